//! Gives the library the name by which programs ask for it.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libfftw3_mpi.so.3");
}
