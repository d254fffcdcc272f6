//! Options of planning: choices, efforts, wisdom, devices.

use std::ffi::c_char;
use std::path::PathBuf;
use std::sync::Mutex;
use std::time::Duration;

use ferrier::{Choice, Effort, Planner};
use serde_json::{Map, Value};

use crate::handle::{Handle, Object, locked};
use crate::json;
use crate::pointer::{In, Out, one_of};
use crate::status::{Failure, Outcome, Status, guard};

/// How plans are made: choices of the user's, how long to search for a fast plan, which wisdom file, which device.
/// Where a function takes options, NULL stands for the defaults. The same on every rank.
pub struct Options(Mutex<Settings>);

impl Object for Options {
    const NAME: &'static str = "set of options";
    const TAG: usize = 3;
}

/// What options say.
#[derive(Clone, Default)]
pub(crate) struct Settings {
    choice: Choice,
    effort: Effort,
    wisdom: WisdomFile,
    /// The number of the GPU that arrays are on.
    pub gpu: Option<usize>,
}

#[derive(Clone, Default)]
enum WisdomFile {
    #[default]
    User,
    Path(PathBuf),
    None,
}

impl Settings {
    /// Those of a handle; the defaults for NULL.
    pub fn of(options: Handle<Options>) -> Outcome<Settings> {
        match options.is_null() {
            true => Ok(Settings::default()),
            false => Ok(locked(&options.get("options")?.0, "options")?.clone()),
        }
    }

    /// The user's choice.
    pub fn choice(&self) -> &Choice {
        &self.choice
    }

    /// A planner with these settings, for arrays in main memory.
    pub fn planner(&self, problem: &ferrier::Problem) -> Planner {
        let planner = Planner::new(problem).choice(self.choice.clone()).effort(self.effort);
        match &self.wisdom {
            WisdomFile::User => planner,
            WisdomFile::Path(path) => planner.wisdom(path),
            WisdomFile::None => planner.without_wisdom(),
        }
    }

    /// Sets fields of the choice.
    fn choose(&mut self, fields: Map<String, Value>) -> Outcome {
        let mut all = match json::value(&self.choice)? {
            Value::Object(all) => all,
            other => return Err(Failure::new(Status::Other, format!("a choice is {other}"))),
        };
        for (key, value) in fields {
            if !all.contains_key(&key) {
                let known: Vec<&str> = all.keys().map(String::as_str).collect();
                let message = format!("unknown option `{key}`; known are: {}", known.join(", "));
                return Err(Failure::new(Status::UnknownName, message));
            }
            let text = value.to_string();
            all.insert(key.clone(), value);
            self.choice = serde_json::from_value(Value::Object(all.clone())).map_err(|error| {
                Failure::new(Status::Choice, format!("option `{key}` is {text}: {error}"))
            })?;
        }
        Ok(())
    }
}

/// The value of an option as text: JSON, numbers that are separated by commas or x, else a word.
fn parse(text: &str) -> Value {
    let numbers: Option<Vec<u64>> = match text.contains([',', 'x']) {
        true => text.split([',', 'x']).map(|number| number.trim().parse().ok()).collect(),
        false => None,
    };
    match numbers {
        Some(numbers) => Value::from(numbers),
        None => serde_json::from_str(text).unwrap_or_else(|_| Value::from(text)),
    }
}

/// How much time a planner may spend on the search for a fast plan.
#[derive(Clone, Copy)]
#[repr(C)]
pub enum EffortKind {
    /// No trials: a model of the machine decides.
    Estimate = 0,
    /// At most 10 seconds and 60 trials.
    Measure = 1,
    /// Trials for a time that is given.
    Patient = 2,
    /// The first transforms of the plan are the trials.
    Online = 3,
}

fn change(options: Handle<Options>, change: impl FnOnce(&mut Settings) -> Outcome) -> Status {
    guard(|| change(&mut *locked(&options.get("options")?.0, "options")?))
}

/// Options with all defaults.
#[unsafe(no_mangle)]
pub extern "C" fn ferrier_options_create(mut options: Out<Handle<Options>>) -> Status {
    guard(|| {
        options.slot("options")?.set(Handle::new(Options(Mutex::default())));
        Ok(())
    })
}

/// Destroys options; plans made with them stay as they are. NULL is allowed.
#[unsafe(no_mangle)]
pub extern "C" fn ferrier_options_free(options: Handle<Options>) -> Status {
    guard(|| options.destroy("options"))
}

/// Sets a choice of the user's by name: "exchange" ("ring"), "kernel", "codec", "path" ("slab", "pencil"), "axes"
/// ("0,1,2"), "grid" ("2x2"), "ranks", "threads", "fuse" ("true"), "memory" ("small"), "progress" ("thread"), ...; an
/// unknown name is an error that lists those that are known. "null" leaves a choice to the planner.
#[unsafe(no_mangle)]
pub extern "C" fn ferrier_options_set(
    options: Handle<Options>,
    key: In<c_char>,
    value: In<c_char>,
) -> Status {
    change(options, |settings| {
        let field = (key.text("key")?.to_owned(), parse(value.text("value")?));
        settings.choose(Map::from_iter([field]))
    })
}

/// Sets choices from a JSON object with the same names.
#[unsafe(no_mangle)]
pub extern "C" fn ferrier_options_set_json(options: Handle<Options>, text: In<c_char>) -> Status {
    change(options, |settings| settings.choose(json::read("text", text.text("text")?)?))
}

/// Sets the effort (a ferrier_effort) of the search for a fast plan where the wisdom file has none; `seconds` is
/// for FERRIER_EFFORT_PATIENT only.
#[unsafe(no_mangle)]
pub extern "C" fn ferrier_options_effort(options: Handle<Options>, effort: i32, seconds: f64) -> Status {
    change(options, |settings| {
        let patient = Duration::try_from_secs_f64(seconds).ok().map(Effort::Patient);
        let known = [
            (EffortKind::Estimate as i32, Some(Effort::Estimate)),
            (EffortKind::Measure as i32, Some(Effort::Measure)),
            (EffortKind::Patient as i32, patient),
            (EffortKind::Online as i32, Some(Effort::Online)),
        ];
        let effort = one_of("effort", effort, &known)?;
        settings.effort = effort.ok_or_else(|| {
            Failure::argument("seconds", format_args!("must be a time, at least 0, got {seconds}"))
        })?;
        Ok(())
    })
}

/// Sets the wisdom file, which rank 0 reads and writes, instead of the user's own. NULL: no wisdom.
#[unsafe(no_mangle)]
pub extern "C" fn ferrier_options_wisdom(options: Handle<Options>, path: In<c_char>) -> Status {
    change(options, |settings| {
        let path = path.optional_text("path")?;
        settings.wisdom = path.map_or(WisdomFile::None, |path| WisdomFile::Path(path.into()));
        Ok(())
    })
}

/// Plans and redistributions whose arrays are in the memory of this CUDA device (its number, from 0 on); -1: in main
/// memory, the default.
#[unsafe(no_mangle)]
pub extern "C" fn ferrier_options_cuda(options: Handle<Options>, device: i32) -> Status {
    change(options, |settings| {
        settings.gpu = gpu(device)?;
        Ok(())
    })
}

/// The number of a GPU; -1 for main memory.
pub(crate) fn gpu(device: i32) -> Outcome<Option<usize>> {
    match device {
        -1 => Ok(None),
        _ if cfg!(not(feature = "cuda")) => Err(without_cuda()),
        0.. => Ok(Some(device as usize)),
        _ => {
            let message = format_args!("must be the number of a GPU, or -1 for none, got {device}");
            Err(Failure::argument("device", message))
        }
    }
}

/// Where a GPU was asked for.
pub(crate) fn without_cuda() -> Failure {
    Failure::new(Status::Unsupported, "this library was built without CUDA")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(settings: &mut Settings, key: &str, value: &str) -> Outcome {
        settings.choose(Map::from_iter([(key.to_owned(), parse(value))]))
    }

    #[test]
    fn choices_by_name() {
        let mut settings = Settings::default();
        for (key, value) in [
            ("exchange", "ring"),
            ("grid", "2x3"),
            ("axes", "2, 1,0"),
            ("threads", "4"),
            ("fuse", "true"),
            ("memory", "small"),
            ("codec", "fixed:12"),
        ] {
            set(&mut settings, key, value).expect(key);
        }
        let choice = &settings.choice;
        assert_eq!((choice.exchange.as_deref(), choice.grid), (Some("ring"), Some([2, 3])));
        assert_eq!((choice.axes.as_deref(), choice.threads), (Some(&[2, 1, 0][..]), Some(4)));
        assert_eq!((choice.fuse, choice.codec.as_deref()), (Some(true), Some("fixed:12")));
        set(&mut settings, "fuse", "null").expect("null");
        assert_eq!(settings.choice.fuse, None);
        let refused = set(&mut settings, "threads", "many").expect_err("no number");
        assert!(refused.status() == Status::Choice && format!("{refused:?}").contains("threads"));
        let refused = set(&mut settings, "thread", "4").expect_err("no such choice");
        assert!(refused.status() == Status::UnknownName && format!("{refused:?}").contains("threads"));
        assert_eq!(settings.choice.threads, Some(4));
    }
}
