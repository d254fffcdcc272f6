//! Devices: where arrays live and passes run.
//!
//! A [`Device`] chooses the backend of a plan by its type: [`Planner::device`](crate::Planner::device). A
//! [`DeviceSpec`] is the device that a user names on a command line. A new device is a folder in `exec/` and an entry
//! in [`DEVICES`].

#[cfg(feature = "cuda")]
use crate::cuda::{Cuda, Gpu};
use crate::exec::{Backend, Cpu};
use crate::{Error, Result};

/// An entry of the table of devices.
#[derive(Debug)]
pub struct DeviceEntry {
    /// The name users type.
    pub name: &'static str,
    /// One line for help texts.
    pub summary: &'static str,
}

/// All devices; the first is the default.
pub static DEVICES: &[DeviceEntry] = &[
    DeviceEntry { name: "cpu", summary: "arrays in main memory, passes on the cores" },
    DeviceEntry { name: "cuda", summary: "arrays and passes on an NVIDIA GPU; cuda:1 is the second one" },
];

/// A device, ready to work. Cheap to clone.
///
/// ```
/// use ferrier::{Comm, Device, Planner, Problem};
/// let device = Device::cpu();
/// let plan = Planner::new(&Problem::c2c([8, 8, 8])).device(&device).draft::<f64>(&Comm::one_rank())?.build()?;
/// # Ok::<(), ferrier::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Device<B: Backend = Cpu> {
    handle: B::Handle,
}

impl<B: Backend> Device<B> {
    pub(crate) fn handle(&self) -> &B::Handle {
        &self.handle
    }
}

impl Device<Cpu> {
    /// The processor's cores and main memory.
    pub fn cpu() -> Self {
        Device { handle: () }
    }
}

#[cfg(feature = "cuda")]
impl Device<Cuda> {
    /// GPU number `index`.
    ///
    /// # Errors
    /// Where there is no such GPU, no driver, or a library is missing; says what was searched.
    pub fn cuda(index: usize) -> Result<Self> {
        Ok(Device { handle: Gpu::new(index)? })
    }
}

#[cfg(feature = "cuda")]
impl std::ops::Deref for Device<Cuda> {
    type Target = Gpu;

    fn deref(&self) -> &Gpu {
        &self.handle
    }
}

/// The name of a device: `cpu`, `cuda`, `cuda:1`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum DeviceSpec {
    /// The processor's cores and main memory.
    #[default]
    Cpu,
    /// A GPU, by its number. `None`: the ranks of a node share out all of them.
    Cuda(Option<usize>),
}

impl std::str::FromStr for DeviceSpec {
    type Err = Error;

    /// `cpu`, `cuda`, `cuda:1`.
    fn from_str(text: &str) -> Result<DeviceSpec> {
        let (name, number) = text.split_once(':').map_or((text, None), |(name, number)| (name, Some(number)));
        let unknown = || Error::UnknownName {
            what: "device",
            name: text.into(),
            known: DEVICES.iter().map(|entry| entry.name).collect::<Vec<_>>().join(", "),
        };
        match (name, number.map(str::parse)) {
            ("cpu", None) => Ok(DeviceSpec::Cpu),
            ("cuda", None) => Ok(DeviceSpec::Cuda(None)),
            ("cuda", Some(Ok(number))) => Ok(DeviceSpec::Cuda(Some(number))),
            _ => Err(unknown()),
        }
    }
}

impl std::fmt::Display for DeviceSpec {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            DeviceSpec::Cpu => f.write_str("cpu"),
            DeviceSpec::Cuda(None) => f.write_str("cuda"),
            DeviceSpec::Cuda(Some(number)) => write!(f, "cuda:{number}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_parse_and_print() {
        for text in ["cpu", "cuda", "cuda:3"] {
            assert_eq!(text.parse::<DeviceSpec>().unwrap().to_string(), text);
        }
        for text in ["", "gpu", "cuda:", "cuda:x", "cpu:1"] {
            let error = text.parse::<DeviceSpec>().unwrap_err().to_string();
            assert!(error.contains("known are: cpu, cuda"), "{error}");
        }
    }
}
