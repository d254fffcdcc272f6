//! Link arguments of the shared library.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // Programs ask for the version of the binary interface.
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libferrier.so.0");
    // MPI keeps addresses of functions that it calls when it is finalized: never unloaded.
    println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete");
}
