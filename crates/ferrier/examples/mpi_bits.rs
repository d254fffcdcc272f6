//! Under `mpiexec`: every exchange that MPI's ranks have gives the same bits
//! as in-process ranks. `mpiexec -n 4 target/debug/examples/mpi_bits`.

use ferrier::exchange::EXCHANGES;
use ferrier::{Choice, Comm, LayoutSpec, Planner, Problem, Result};

fn bits(comm: &Comm, problem: &Problem, exchange: &str, real: bool) -> Result<Vec<[u64; 2]>> {
    let choice = Choice { exchange: Some(exchange.into()), ..Choice::default() };
    let mut plan = Planner::new(problem).choice(choice).draft::<f64>(comm)?.build()?;
    let mut input = plan.make_input()?;
    let value = |[i, j, k]: [usize; 3]| ((i * 31 + j * 17 + k * 7) % 23) as f64 - 11.3;
    if real {
        input.fill_real(|_, at| value(at));
    } else {
        input.fill_complex(|_, at| ferrier::Complex::new(value(at), 0.5 - value(at)));
    }
    let mut output = plan.make_output()?;
    for _ in 0..2 {
        plan.forward(&input, &mut output)?;
    }
    Ok(output.complex().iter().map(|x| [x.re.to_bits(), x.im.to_bits()]).collect())
}

fn main() -> Result<()> {
    let Some(comm) = ferrier::mpi::world()? else {
        println!("not started by mpiexec");
        return Ok(());
    };
    let shape = [12, 10, 9];
    let problems = [
        (Problem::c2c(shape), false),
        (Problem::c2c(shape).input(LayoutSpec::bricks()).output(LayoutSpec::pencils(0)), false),
        (Problem::r2c(shape), true),
    ];
    let mut compared = 0;
    for (problem, real) in &problems {
        for exchange in EXCHANGES.iter().map(|member| member.name) {
            if exchange == "direct" && comm.size() > 1 {
                assert!(bits(&comm, problem, exchange, *real).is_err());
                continue;
            }
            let here = bits(&comm, problem, exchange, *real)?;
            let there =
                ferrier::ranks(comm.size()).threads(1).run(|comm| bits(&comm, problem, exchange, *real))?;
            assert!(here == there[comm.rank()], "rank {}: {exchange}: other bits", comm.rank());
            compared += 1;
        }
    }
    comm.barrier()?;
    if comm.rank() == 0 {
        println!("{compared} transforms on {} ranks: the same bits", comm.size());
    }
    Ok(())
}
