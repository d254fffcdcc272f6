//! Wisdom: the results of tuning, in a file.
//!
//! `Plan::new` reads the file on rank 0; all ranks use the choice that rank 0 finds. Wisdom changes the speed of a
//! plan. It changes bits only if it changes the order of the axes or the kernel, and never in `reproducible` mode.
//!
//! The file is `FERRIER_WISDOM`, or `ferrier/wisdom.json` in the user's data folder (`XDG_DATA_HOME`, else
//! `~/.local/share`); `FERRIER_WISDOM=off` disables it. A file that cannot be read or written is a warning, never an
//! error of a plan.

mod entries;
mod file;
mod key;
mod lookup;

pub use entries::{Entry, Measured, Wisdom};
pub(crate) use file::WisdomFile;
pub use file::user_file;
pub use key::{MachineKey, ProblemKey};
pub use lookup::{keys, learn, measure_machine};
pub(crate) use lookup::{record, start_choice};

pub use crate::planner::entry_ref::EntryRef;
