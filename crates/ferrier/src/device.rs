//! Devices: where arrays live and kernels run.
//!
//! A device member is one folder and one line in [`DEVICES`]. The member `cpu`
//! is what [`Plan`](crate::Plan) runs on; `cuda` has plans and arrays of its
//! own, made from the same recipes (module `cuda`, with the cargo feature of
//! that name).

#[cfg(feature = "cuda")]
use crate::cuda;
use crate::{Error, Result};

/// A line of the table of devices.
#[derive(Debug)]
pub struct Member {
    /// The name users type.
    pub name: &'static str,
    /// One line for help texts.
    pub summary: &'static str,
}

/// All devices; the first is the default.
pub static DEVICES: &[Member] = &[
    Member { name: "cpu", summary: "arrays in main memory, passes on the cores" },
    Member { name: "cuda", summary: "arrays and passes on an NVIDIA GPU; cuda:1 is the second one" },
];

/// A device that was asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Device {
    /// The processor's cores and main memory.
    #[default]
    Cpu,
    /// A GPU, by its number. `None`: the ranks of a node share out all of them.
    Cuda(Option<usize>),
}

impl Device {
    /// GPU number `index`, ready to work.
    ///
    /// # Errors
    /// Where there is no such GPU, no driver, or a library is missing; says what was searched.
    #[cfg(feature = "cuda")]
    pub fn cuda(index: usize) -> Result<cuda::Gpu> {
        cuda::Gpu::new(index)
    }
}

impl std::str::FromStr for Device {
    type Err = Error;

    /// `cpu`, `cuda`, `cuda:1`.
    fn from_str(text: &str) -> Result<Device> {
        let (name, number) = text.split_once(':').map_or((text, None), |(name, number)| (name, Some(number)));
        let unknown = || Error::UnknownName {
            what: "device",
            name: text.into(),
            known: DEVICES.iter().map(|member| member.name).collect::<Vec<_>>().join(", "),
        };
        match (name, number.map(str::parse)) {
            ("cpu", None) => Ok(Device::Cpu),
            ("cuda", None) => Ok(Device::Cuda(None)),
            ("cuda", Some(Ok(number))) => Ok(Device::Cuda(Some(number))),
            _ => Err(unknown()),
        }
    }
}

impl std::fmt::Display for Device {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Device::Cpu => f.write_str("cpu"),
            Device::Cuda(None) => f.write_str("cuda"),
            Device::Cuda(Some(number)) => write!(f, "cuda:{number}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_go_both_ways() {
        for text in ["cpu", "cuda", "cuda:3"] {
            assert_eq!(text.parse::<Device>().unwrap().to_string(), text);
        }
        for text in ["", "gpu", "cuda:", "cuda:x", "cpu:1"] {
            let error = text.parse::<Device>().unwrap_err().to_string();
            assert!(error.contains("known are: cpu, cuda"), "{error}");
        }
    }
}
