//! Windows.

use ferrier_mpi::{Comm, Error, Result, Window};

pub fn one_sided(world: &Comm) -> Result<()> {
    let (rank, size) = (world.rank(), world.size());
    // A row from every rank; rank 0 has eight bytes more.
    const ROW: usize = 1000;
    let window = Window::allocate(world, size * ROW + if rank == 0 { 8 } else { 0 })?;
    assert_eq!(window.len(0), size * ROW + 8);
    let mut zeros = vec![1_u8; window.len(rank)];
    window.read(0, &mut zeros)?;
    assert!(zeros.iter().all(|&byte| byte == 0));
    // The others put into it from here on.
    world.barrier()?;
    let row = |from: usize, to: usize| -> Vec<u8> { (0..ROW).map(|i| super::value(from, to, i)).collect() };
    let rows: Vec<Vec<u8>> = (0..size).map(|to| row(rank, to)).collect();
    let check = |what: &str| -> Result<()> {
        for from in 0..size {
            let mut got = vec![0; ROW];
            window.read(from * ROW, &mut got)?;
            assert!(got == row(from, rank), "{what}: a put from {from} to {rank} gave wrong bytes");
        }
        Ok(())
    };
    let clear = || -> Result<()> {
        window.put(&vec![0_u8; size * ROW], rank, 0)?;
        window.flush(rank)?;
        world.barrier()
    };

    assert!(window.put(&[1_u8], 0, 0).is_err() && window.flush(0).is_err() && window.unlock_all().is_err());
    window.lock_all()?;
    assert!(window.lock_all().is_err());
    for step in 0..size {
        let to = (rank + step) % size;
        window.put(&rows[to], to, rank * ROW)?;
        window.flush(to)?;
    }
    world.barrier()?;
    window.sync()?;
    check("put")?;
    world.barrier()?;

    clear()?;
    for (to, row) in rows.iter().enumerate() {
        // SAFETY: the rows live and stay as they are until the flush.
        unsafe { window.begin_put(row.as_ptr(), row.len(), to, rank * ROW)? };
    }
    window.flush_all()?;
    world.barrier()?;
    window.sync()?;
    check("begun puts")?;

    for (to, at, length) in [(0, size * ROW + 8, 1), (0, 1, size * ROW + 8), (size, 0, 1), (0, usize::MAX, 2)]
    {
        let refused = window.put(&vec![0_u8; length], to, at);
        assert!(matches!(refused, Err(Error::Argument(_))), "{refused:?}");
    }

    // A word of the neighbour's, which waits for it.
    let right = (rank + 1) % size;
    world.barrier()?;
    window.put(&[42 + rank as u64], right, 0)?;
    window.flush(right)?;
    while window.load(0)? != 42 + ((rank + size - 1) % size) as u64 {
        window.sync()?;
        world.progress()?;
        std::thread::yield_now();
    }
    assert!(window.load(4).is_err() && window.load(size * ROW + 8).is_err());
    world.barrier()?;
    window.unlock_all()?;
    world.barrier()?;

    // Dropped while it is open.
    window.lock_all()?;
    drop(window);
    assert_eq!(world.mpi().live().windows, 0);
    Ok(())
}
