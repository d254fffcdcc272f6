//! Point-to-point messages.

use ferrier_mpi::{Comm, Error, Result, Source, wait_any};

const LENGTHS: [usize; 6] = [0, 1, 7, 64, 1000, 20_000];

pub fn all(world: &Comm) -> Result<()> {
    blocking(world)?;
    in_flight(world)?;
    ended_by_drop(world)?;
    errors(world)
}

fn blocking(world: &Comm) -> Result<()> {
    let (rank, size) = (world.rank(), world.size());
    for other in 0..size {
        if other == rank {
            continue;
        }
        for (tag, &length) in (0..).zip(&LENGTHS) {
            let out: Vec<u32> = (0..length as u32).map(|i| i * 3 + rank as u32).collect();
            // Longer than the message by one.
            let mut into = vec![u32::MAX; length + 1];
            let receive = |into: &mut [u32]| {
                let source = if tag % 2 == 0 { Source::Rank(other) } else { Source::Any };
                // Any source: only one peer uses this tag at a time.
                let tag = tag + 10 * (rank.min(other) * size + rank.max(other)) as i32;
                world.receive(into, source, tag).inspect(|got| {
                    assert_eq!((got.bytes, got.source, got.tag), (4 * length, other, tag));
                })
            };
            let tag_sent = tag + 10 * (rank.min(other) * size + rank.max(other)) as i32;
            if rank < other {
                world.send(&out, other, tag_sent)?;
                receive(&mut into)?;
            } else {
                receive(&mut into)?;
                world.send(&out, other, tag_sent)?;
            }
            for (i, &value) in into.iter().enumerate() {
                let expected = if i < length { i as u32 * 3 + other as u32 } else { u32::MAX };
                assert_eq!(value, expected);
            }
        }
    }
    Ok(())
}

fn in_flight(world: &Comm) -> Result<()> {
    let (rank, size) = (world.rank(), world.size());
    for length in LENGTHS {
        let out: Vec<Vec<u8>> =
            (0..size).map(|to| (0..length).map(|i| super::value(rank, to, i)).collect()).collect();
        let mut into = vec![vec![0xee_u8; length]; size];
        world.scope(|scope| {
            // To itself, too.
            let mut receives = Vec::new();
            for (from, buffer) in into.iter_mut().enumerate() {
                receives.push(scope.receive(world, buffer, from, 3)?);
            }
            for (to, buffer) in out.iter().enumerate() {
                std::mem::forget(scope.send(world, buffer, to, 3)?);
            }
            let mut seen = vec![false; size];
            let mut count = 0;
            while wait_any(&receives, &mut seen)?.is_some() {
                count += 1;
            }
            assert_eq!(count, size);
            for (from, request) in receives.into_iter().enumerate() {
                assert!(request.test()?);
                let complete = request.wait()?;
                let got = complete.received.expect("a message");
                assert_eq!((got.bytes, got.source), (length, from));
                assert!(
                    complete.data.iter().enumerate().all(|(i, &byte)| byte == super::value(from, rank, i))
                );
            }
            Ok(())
        })?;
        for (from, data) in into.iter().enumerate() {
            assert!(data.iter().enumerate().all(|(i, &byte)| byte == super::value(from, rank, i)));
        }
    }
    Ok(())
}

fn ended_by_drop(world: &Comm) -> Result<()> {
    let mut never = [0_u8; 4];
    let mut forgotten = [0_u8; 4];
    let live = world.scope(|scope| {
        drop(scope.receive(world, &mut never, world.rank(), 77)?);
        assert_eq!(world.mpi().live().requests, 0);
        std::mem::forget(scope.receive(world, &mut forgotten, Source::Any, 78)?);
        Ok(world.mpi().live().requests)
    })?;
    assert!(live >= 1);
    assert_eq!(world.mpi().live().requests, 0);
    world.barrier()
}

fn errors(world: &Comm) -> Result<()> {
    let size = world.size();
    assert!(matches!(world.send(&[0_u8], size, 0), Err(Error::Argument(_))));
    // A negative tag: MPI's own text.
    match world.send(&[0_u8], 0, -77) {
        Err(Error::Mpi { call, text, .. }) => {
            assert!(call.starts_with("MPI_Send") && !text.is_empty());
        }
        other => panic!("a negative tag: {other:?}"),
    }
    if size == 1 {
        // Open MPI truncates messages to the sending rank without an error.
        return Ok(());
    }
    // A message that does not fit. It goes in one piece under every limit that tests set: a second piece would
    // never be received, and would wait for the next communicator that gets the number of this one (Open MPI 5
    // then takes it for one of that communicator's messages, which are lost for it).
    let own = world.duplicate()?;
    let (right, left) = ((own.rank() + 1) % size, (own.rank() + size - 1) % size);
    let data = [5_u8; 4];
    let mut short = [0_u8; 2];
    own.scope(|scope| {
        let receive = scope.receive(&own, &mut short, left, 5)?;
        let _send = scope.send(&own, &data, right, 5)?;
        match receive.wait() {
            Err(Error::Mpi { text, .. }) => assert!(!text.is_empty()),
            other => panic!("a message that does not fit: {other:?}"),
        }
        Ok(())
    })
}
