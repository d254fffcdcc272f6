//! What there is no plan for on a GPU: said before anything is launched.

use ferrier::{Choice, Comm, Error, Kind, Problem};

use crate::{gpu, planner};

fn refusal(problem: &Problem, choice: &Choice, ranks: usize) -> Error {
    let gpu = gpu().expect("there is one");
    let run = |comm: Comm| Ok(planner(problem, choice, &gpu).draft::<f64>(&comm).err());
    let told = ferrier::ranks(ranks).run(run).expect("an answer");
    assert!(told.iter().all(|error| *error == told[0]), "{told:?}");
    told.into_iter().next().flatten().unwrap_or_else(|| panic!("not refused: {problem:?} {choice:?}"))
}

#[test]
fn unsupported_problems_on_a_gpu_are_errors() {
    if gpu().is_none() {
        return;
    }
    let plain = Problem::c2c([8, 8, 8]);
    let with = |exchange: &str, codec: &str| Choice::new().exchange(exchange).codec(codec);
    let cosines = Problem::mixed([8, 8, 8], [Kind::Complex, Kind::Dct2, Kind::Complex]);
    let sphere = plain.clone().keep_sphere(3.0);
    for (problem, choice, ranks, part) in [
        (&cosines, Choice::default(), 1, "axis 1 is dct2"),
        (&sphere, Choice::default(), 2, "sphere"),
        (&plain, with("hierarchical", "f16"), 2, "encodes nothing on a GPU"),
        (&plain, with("all_to_allv", "zfp:rate=8"), 2, "does not run on a GPU"),
        (&plain, with("all_to_allv", "within:1e-4"), 2, "does not run on a GPU"),
        (&plain.clone().tolerance(1e-4), Choice::new().exchange("direct"), 2, "encodes nothing on a GPU"),
    ] {
        let told = refusal(problem, &choice, ranks).to_string();
        assert!(told.contains(part), "{told}");
    }
}
