//! Windows.

use ferrier_mpi::{Comm, Error, Result, Window};

pub fn all(world: &Comm) -> Result<()> {
    one_sided(world)?;
    shared(&world.split_node()?)
}

fn one_sided(world: &Comm) -> Result<()> {
    let (rank, size) = (world.rank(), world.size());
    // A row from every rank; rank 0 has eight bytes more.
    const ROW: usize = 1000;
    let window = Window::allocate(world, size * ROW + if rank == 0 { 8 } else { 0 })?;
    assert_eq!(window.len(0), size * ROW + 8);
    assert!(window.pointer(rank).is_some() && !window.is_empty());
    let row = |from: usize, to: usize| -> Vec<u8> { (0..ROW).map(|i| super::value(from, to, i)).collect() };
    let rows: Vec<Vec<u8>> = (0..size).map(|to| row(rank, to)).collect();
    let check = |what: &str| -> Result<()> {
        for from in 0..size {
            let mut got = vec![0; ROW];
            window.read(rank, from * ROW, &mut got)?;
            assert!(got == row(from, rank), "{what}: a put from {from} to {rank} gave wrong bytes");
        }
        Ok(())
    };
    let clear = || -> Result<()> {
        window.write(rank, 0, &vec![0_u8; size * ROW])?;
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
    window.unlock_all()?;
    world.barrier()?;

    // Dropped while it is open.
    window.lock_all()?;
    drop(window);
    assert_eq!(world.mpi().live().windows, 0);
    Ok(())
}

fn shared(node: &Comm) -> Result<()> {
    let (rank, size) = (node.rank(), node.size());
    let mine = 100 * (rank + 1);
    let window = Window::allocate_shared(node, 8 + mine)?;
    window.lock_all()?;
    let mut zeros = vec![1_u8; mine];
    window.read(rank, 8, &mut zeros)?;
    assert!(zeros.iter().all(|&byte| byte == 0));

    // Writes its own bytes, then sets a flag; the neighbour waits for the flag and reads.
    let data: Vec<u8> = (0..mine).map(|i| super::value(rank, 9, i)).collect();
    window.write(rank, 8, &data)?;
    window.store(rank, 0, 42 + rank as u64)?;
    for other in 0..size {
        assert_eq!(window.pointer(other).expect("shared").as_ptr() as usize % 4096, 0);
        while window.load(other, 0)? != 42 + other as u64 {
            window.sync()?;
            std::thread::yield_now();
        }
        let mut got = vec![0; window.len(other) - 8];
        window.read(other, 8, &mut got)?;
        assert!(got.iter().enumerate().all(|(i, &byte)| byte == super::value(other, 9, i)));
    }
    assert!(window.load(rank, 4).is_err() && window.load(rank, mine + 8).is_err());
    node.barrier()?;

    // Writes directly to the neighbour's bytes.
    let right = (rank + 1) % size;
    window.write(right, 8, &[rank as u64])?;
    node.barrier()?;
    let mut from = [99_u64];
    window.read(rank, 8, &mut from)?;
    assert_eq!(from[0] as usize, (rank + size - 1) % size);
    node.barrier()?;
    window.unlock_all()?;
    drop(window);

    // An error, before a write would end the process.
    let refused = Window::allocate_shared(node, 1 << 50).err();
    assert!(matches!(refused, Some(Error::SharedMemory { .. })), "{refused:?}");
    Ok(())
}
