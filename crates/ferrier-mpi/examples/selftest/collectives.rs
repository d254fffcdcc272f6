//! Collective calls.

use ferrier_mpi::{Comm, Error, Number, Op, Result};

pub fn all(world: &Comm) -> Result<()> {
    let (rank, size) = (world.rank(), world.size());
    world.barrier()?;
    for length in [0, 1, 5, 333] {
        for root in 0..size {
            let mut data: Vec<f64> =
                (0..length).map(|i| if rank == root { (i * 2 + root) as f64 } else { -1.0 }).collect();
            world.broadcast(&mut data, root)?;
            assert!(data.iter().enumerate().all(|(i, &value)| value == (i * 2 + root) as f64));
        }

        let mine: Vec<u16> = (0..length).map(|i| (i + 1000 * rank) as u16).collect();
        let mut all = vec![0_u16; length * size];
        world.all_gather(&mine, &mut all)?;
        for from in 0..size {
            for i in 0..length {
                assert_eq!(all[from * length + i], (i + 1000 * from) as u16);
            }
        }

        let bytes: Vec<u8> = (0..length * rank).map(|i| super::value(rank, 0, i)).collect();
        let lists = world.all_gather_bytes(&bytes)?;
        assert_eq!(lists.len(), size);
        for (from, list) in lists.iter().enumerate() {
            let expected: Vec<u8> = (0..length * from).map(|i| super::value(from, 0, i)).collect();
            assert_eq!(*list, expected);
        }

        let send: Vec<i64> = (0..size * length).map(|i| (i + 10_000 * rank) as i64).collect();
        let mut recv = vec![0_i64; size * length];
        world.all_to_all(&send, &mut recv)?;
        for from in 0..size {
            for i in 0..length {
                assert_eq!(recv[from * length + i], (rank * length + i + 10_000 * from) as i64);
            }
        }
    }
    reduce::<i32>(world, |i| i as i32)?;
    reduce::<i64>(world, |i| i as i64)?;
    reduce::<u64>(world, |i| i as u64)?;
    reduce::<f32>(world, |i| i as f32)?;
    reduce::<f64>(world, |i| i as f64)?;
    if size > 1 {
        assert!(matches!(world.all_to_all(&[1_u8], &mut [0]), Err(Error::Argument(_))));
    }
    assert!(matches!(world.all_gather(&[1_u8], &mut [0; 99]), Err(Error::Argument(_))));
    Ok(())
}

fn reduce<T: Number + PartialEq + std::fmt::Debug>(world: &Comm, make: fn(usize) -> T) -> Result<()> {
    let (rank, size) = (world.rank(), world.size());
    for length in [0, 1, 50] {
        for op in [Op::Sum, Op::Min, Op::Max] {
            let mut data: Vec<T> = (0..length).map(|i| make(i * (rank + 1))).collect();
            world.all_reduce(&mut data, op)?;
            for (i, &value) in data.iter().enumerate() {
                let expected = match op {
                    Op::Sum => i * size * (size + 1) / 2,
                    Op::Min => i,
                    Op::Max => i * size,
                };
                assert_eq!(value, make(expected));
            }
        }
    }
    Ok(())
}
