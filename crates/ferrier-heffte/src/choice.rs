//! heFFTe's options and the choices of Ferrier that have the same meaning.

use ferrier::{Choice, Comm, Decomposition};

/// `plan_options`, as callers hand them over.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Options {
    /// `reshape_algorithm`: 0 `alltoallv`, 1 `p2p_plined`, 2 `p2p`, 3 `alltoall`.
    pub algorithm: i32,
    /// `use_reorder`.
    pub reorder: i32,
    /// `use_pencils`.
    pub pencils: i32,
    /// `use_gpu_aware`.
    pub gpu_aware: i32,
    /// Ranks that hold data between the first and the last reshape; all where it is not positive.
    pub subranks: i32,
}

/// What Ferrier is told, and what it serves in another way.
///
/// Default options leave everything to the planner. The algorithm names the MPI calls that carry messages: it chooses the
/// exchange where ranks are on several nodes. On one node there are no messages.
pub fn choice(options: &Options, comm: &Comm) -> Result<(Choice, Vec<String>), String> {
    let (mut choice, mut notes) = (Choice::new(), Vec::new());
    let (name, exchange) = match options.algorithm {
        0 => ("alltoallv", None),
        1 => ("p2p_plined", Some("point_to_point")),
        2 => ("p2p", Some("point_to_point")),
        3 => ("alltoall", Some("all_to_all")),
        other => return Err(format!("algorithm must be a reshape_algorithm (0 to 3), got {other}")),
    };
    if let Some(exchange) = exchange {
        if comm.node_count() > 1 {
            choice = choice.exchange(exchange);
        } else if comm.size() > 1 {
            notes.push(format!(
                "algorithm {name}: the ranks are on one node and exchange data without messages"
            ));
        }
    }
    if options.pencils == 0 && comm.size() > 1 {
        choice = choice.decomposition(Decomposition::Slab);
    }
    if let Ok(ranks) = usize::try_from(options.subranks)
        && ranks > 0
        && ranks < comm.size()
    {
        choice = choice.ranks(ranks);
    }
    if options.reorder == 0 {
        notes.push("use_reorder = false: the kernels choose between strided and contiguous lines".into());
    }
    if options.gpu_aware == 0 {
        notes.push(
            "use_gpu_aware = false: whether MPI takes addresses of a GPU is found out by asking it".into(),
        );
    }
    Ok((choice, notes))
}
