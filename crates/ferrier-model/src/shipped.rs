//! Machine files that are part of the program.

use crate::cluster::Cluster;
use crate::error::{Error, Result};

/// A machine file.
#[derive(Debug)]
#[non_exhaustive]
pub struct ShippedMachine {
    /// The name users type.
    pub name: &'static str,
    /// The text of the file.
    pub text: &'static str,
}

macro_rules! machines {
    ($($name:literal),*) => {
        /// All machine files that are part of the program.
        pub static SHIPPED: &[ShippedMachine] =
            &[$(ShippedMachine { name: $name, text: include_str!(concat!("../machines/", $name, ".toml")) }),*];
    };
}

machines! { "summit", "hopper", "umd", "odin", "h100-ndr", "genoa-hdr" }

/// The machine called `name`.
///
/// # Errors
/// [`Error::File`] lists the known names.
pub fn shipped(name: &str) -> Result<Cluster> {
    let found = SHIPPED.iter().find(|machine| machine.name == name).ok_or_else(|| {
        let known: Vec<_> = SHIPPED.iter().map(|machine| machine.name).collect();
        Error::File(format!(
            "no machine is called `{name}`; known are: {}, or the path of a file",
            known.join(", ")
        ))
    })?;
    Cluster::parse(found.text)
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    /// The keys of all numbers of a file.
    fn numbers(value: &Value, key: &str, keys: &mut Vec<String>) {
        match value {
            Value::Number(_) => keys.push(key.into()),
            Value::Array(list) => list.iter().for_each(|value| numbers(value, key, keys)),
            Value::Object(table) => {
                for (name, value) in table {
                    let key = if key.is_empty() { name.clone() } else { format!("{key}.{name}") };
                    numbers(value, &key, keys);
                }
            }
            _ => {}
        }
    }

    #[test]
    fn every_number_of_a_shipped_file_has_an_origin() {
        for machine in SHIPPED {
            let cluster = Cluster::parse(machine.text).unwrap();
            assert_eq!(cluster.name, machine.name);
            let mut keys = Vec::new();
            numbers(&basic_toml::from_str::<Value>(machine.text).unwrap(), "", &mut keys);
            assert!(keys.len() > 10, "{keys:?}");
            for key in keys {
                assert!(cluster.origin_of(&key).is_some(), "{}: {key} has no origin", machine.name);
            }
            assert_eq!(Cluster::parse(&cluster.to_toml().unwrap()).unwrap(), cluster);
        }
    }

    #[test]
    fn wrong_files_are_refused_with_a_reason() {
        let text = SHIPPED[0].text;
        for (from, to, says) in [
            ("nodes = 4608", "nodes = 0", "nodes must be at least 1"),
            ("rails = 2", "rails = 3", "3 rails"),
            ("gap_s", "gapp_s", "unknown field"),
            ("family = \"generic\"", "family = \"z80\"", "cpu.family `z80`"),
            ("kind = \"fat_tree\"", "kind = \"ring\"", "ring"),
            ("nodes = 4608", "nodes = 99999999999", "nodes must be at most"),
            ("ways = 8", "ways = 0", "cpu.level2.ways must be at least 1"),
            ("latency_s = 2e-6", "latency_s = nan", "network.latency_s must be from 0 to 1e18, got NaN"),
            ("copy_overlap = 1.0", "copy_overlap = 1.5", "network.copy_overlap must be at most 1"),
            (
                "memory_bytes_s = 14e9",
                "memory_bytes_s = 0.0",
                "cpu.constants.memory_bytes_s must be from 1e0 to 1e18",
            ),
            ("memory_bytes_s = 14e9", "memory_s = 1.0", "cpu.constants.memory_s: no constant"),
            ("rail_bytes_s = ", "rail_bytes_s = 1e-300 # ", "network.rail_bytes_s must be from 1e0 to 1e18"),
            ("launch_s = ", "launch_s = -", "gpu.launch_s must be from 0 to 1e18"),
            ("rails = 2", "rails = 2000000", "network.rails must be at most 1048576, got 2000000"),
        ] {
            assert!(text.contains(from), "{from}");
            let error = Cluster::parse(&text.replace(from, to)).unwrap_err().to_string();
            assert!(error.contains(says) && !error.contains('\n'), "{error}");
        }
        // The parser is recursive: it would overflow the stack.
        let deep = format!("name = {}", "[".repeat(100_000));
        assert!(Cluster::parse(&deep).unwrap_err().to_string().contains("brackets inside each other"));
        let torus = |dims: &str| {
            let text = shipped("hopper").unwrap().to_toml().unwrap().replace("[17, 8, 24]", dims);
            Cluster::parse(&text).unwrap_err().to_string()
        };
        assert!(torus("[2, 2, 2]").contains("8 routers with room for 16 nodes; the machine has 6384"));
        assert!(torus("[4294967296, 4294967296]").contains("at most 4194304 routers"));
        assert!(shipped("summmit").unwrap_err().to_string().contains("summit, hopper, umd"));
    }
}
