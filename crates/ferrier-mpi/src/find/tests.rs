use std::fs;
use std::path::{Path, PathBuf};

use super::{Surroundings, find_in};
use crate::abi::Family;
use crate::error::Error;

/// A temporary folder, removed on drop.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Scratch {
        let path = std::env::temp_dir().join(format!("ferrier-mpi-find-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).expect("scratch folder");
        Scratch(path.canonicalize().expect("scratch folder"))
    }

    fn file(&self, path: &str, content: &[u8]) -> PathBuf {
        let path = self.0.join(path);
        fs::create_dir_all(path.parent().expect("parent")).expect("folder");
        fs::write(&path, content).expect("file");
        path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

const ELF: &[u8] = b"\x7fELF...MPI_Init_thread\0...";
const ELF_OPEN: &[u8] = b"\x7fELF...ompi_mpi_comm_world\0MPI_Init_thread\0";

fn around(variables: &[(&str, &str)], ancestors: &[&Path]) -> Surroundings {
    Surroundings {
        variables: variables.iter().map(|(name, value)| ((*name).into(), value.into())).collect(),
        ancestors: ancestors.iter().map(|path| path.to_path_buf()).collect(),
        system: Vec::new(),
    }
}

#[test]
fn none_without_a_launcher() {
    assert_eq!(find_in(&around(&[("PATH", "/usr/bin")], &[])), Ok(None));
    // A launcher among the ancestors that set no variable did not start this process.
    assert_eq!(find_in(&around(&[], &[Path::new("/usr/bin/mpiexec.hydra")])), Ok(None));
}

#[test]
fn one_slurm_task_is_alone_many_are_not() {
    let one = [("SLURM_STEP_ID", "0"), ("SLURM_JOB_ID", "7"), ("SLURM_STEP_NUM_TASKS", "1")];
    assert_eq!(find_in(&around(&one, &[])), Ok(None));
    let many = [("SLURM_STEP_ID", "0"), ("SLURM_JOB_ID", "7"), ("SLURM_STEP_NUM_TASKS", "2")];
    let error = find_in(&around(&many, &[])).expect_err("no library");
    assert!(error.to_string().contains("Slurm"), "{error}");
}

#[test]
fn the_path_of_the_launcher_decides() {
    let scratch = Scratch::new("place");
    let launcher = scratch.0.join("five/bin/hydra_pmi_proxy");
    let library = scratch.file("five/lib/libmpi_abi.so.1", ELF);
    scratch.file("four/lib/libmpich.so.12", ELF);
    let found = find_in(&around(&[("PMI_RANK", "0")], &[Path::new("/bin/bash"), &launcher]));
    let found = found.expect("found").expect("under a launcher");
    assert_eq!((found.path, found.family), (library, Family::Standard));
    assert!(found.why.contains("hydra_pmi_proxy"), "{}", found.why);
}

#[test]
fn the_nearest_launcher_wins() {
    let scratch = Scratch::new("nearest");
    let outer = scratch.0.join("open/bin/prterun");
    let inner = scratch.0.join("mpich/bin/hydra_pmi_proxy");
    scratch.file("open/lib/libmpi.so.40", ELF_OPEN);
    let library = scratch.file("mpich/lib/libmpich.so.12", ELF);
    let open = scratch.0.join("open").display().to_string();
    let variables = [
        ("OMPI_COMM_WORLD_SIZE", "1"),
        ("OPAL_PREFIX", open.as_str()),
        ("PMI_RANK", "0"),
        ("PMIX_RANK", "0"),
    ];
    let found = find_in(&around(&variables, &[&inner, &outer])).expect("found").expect("under a launcher");
    assert_eq!((found.path, found.family), (library, Family::Mpich));
}

#[test]
fn other_families_and_linker_scripts_are_skipped() {
    let scratch = Scratch::new("over");
    let launcher = scratch.0.join("bin/mpiexec.hydra");
    scratch.file("lib/libmpi.so", ELF_OPEN);
    scratch.file("lib/libmpi_abi.so", b"INPUT(libmpi_abi.so.1)");
    let library = scratch.file("lib64/libmpi.so", ELF);
    let found =
        find_in(&around(&[("PMI_RANK", "0")], &[&launcher])).expect("found").expect("under a launcher");
    assert_eq!((found.path, found.family), (library, Family::Mpich));
    let lines: Vec<String> = found.searched.iter().map(ToString::to_string).collect();
    assert!(lines.iter().any(|line| line.contains("this is Open MPI")), "{lines:?}");
    assert!(lines.iter().any(|line| line.contains("linker script")), "{lines:?}");
}

#[test]
fn opal_prefix_comes_first() {
    let scratch = Scratch::new("opal");
    let library = scratch.file("a/lib/libmpi.so.40", ELF_OPEN);
    scratch.file("b/lib/libmpi.so.40", ELF_OPEN);
    let prefix = scratch.0.join("a").display().to_string();
    let variables = [("OMPI_COMM_WORLD_SIZE", "2"), ("OPAL_PREFIX", prefix.as_str()), ("PMIX_RANK", "0")];
    let found =
        find_in(&around(&variables, &[&scratch.0.join("b/bin/prterun")])).expect("found").expect("launcher");
    assert_eq!(found.path, library);
}

#[test]
fn not_found_lists_the_places_searched() {
    let scratch = Scratch::new("missing");
    let launcher = scratch.0.join("bin/orterun");
    let error = find_in(&around(&[("OMPI_COMM_WORLD_SIZE", "2")], &[&launcher])).expect_err("no library");
    let text = error.to_string();
    assert!(
        text.contains("orterun") && text.contains("FERRIER_MPI") && text.contains("no such folder"),
        "{text}"
    );
}

#[test]
fn override_by_path_folder_name_and_off() {
    let scratch = Scratch::new("override");
    let library = scratch.file("libmpi.so", ELF_OPEN);
    let with = |value: &str| find_in(&around(&[("FERRIER_MPI", value), ("PMI_RANK", "0")], &[]));
    assert_eq!(with("off"), Ok(None));
    for value in [library.to_str().expect("utf-8"), scratch.0.to_str().expect("utf-8")] {
        let found = with(value).expect("found").expect("library");
        assert_eq!((&found.path, found.family), (&library, Family::OpenMpi));
        assert!(found.why.contains("FERRIER_MPI"));
    }
    assert_eq!(with("libmpich.so.12").expect("name").expect("library").family, Family::Mpich);
    for wrong in ["/nowhere/libmpi.so", "libm.so.6", "/dev/null"] {
        assert!(matches!(with(wrong), Err(Error::Override { .. })), "{wrong}");
    }
}
