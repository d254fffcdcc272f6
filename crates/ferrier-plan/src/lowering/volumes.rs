//! Bytes between ranks in a tile of a reshape.

use crate::geometry::width;
use crate::layout::Box3;
use crate::messages::{CHUNK_SCALARS, EncodedChunks, Encoding, SegmentTable, Volumes, spread};
use crate::schedule::Reshape;
use crate::tiles::Tiles;

/// The bytes between `rank` and the others in a tile of a reshape; upper bounds for encoded segments.
/// `scalar_bytes` is the size of a scalar.
pub fn volumes(
    reshape: &Reshape,
    (cut, tile): (&Tiles, usize),
    rank: usize,
    scalar_bytes: usize,
    encoding: Option<&Encoding>,
) -> Volumes {
    let (owned, cut, coding) = (reshape.clone(), *cut, encoding.cloned());
    let kept = owned.clone();
    let table = SegmentTable::new(reshape.from.ranks(), move |rank, sending| {
        let bytes = |(peer, scalars): (usize, usize)| {
            let (source, target) = if sending { (rank, peer) } else { (peer, rank) };
            let coding = coding.as_ref().filter(|coding| coding.is_encoded(source, target));
            (peer, coding.map_or(scalars * scalar_bytes, |coding| coding.segment_bytes(scalars)))
        };
        scalars(&owned, (&cut, tile), rank, sending).into_iter().map(bytes).collect()
    });
    let table = table.keeping(move |rank| {
        let [from, to] = [&kept.from, &kept.to].map(|layout| &layout.boxes()[rank]);
        !cut.between(from, to, tile).is_empty()
    });
    let chunks = |encoding: &Encoding, sending: bool| {
        let chunks = |(peer, scalars)| {
            let (source, target) = if sending { (rank, peer) } else { (peer, rank) };
            (peer, encoding.chunks(source, target, scalars))
        };
        let list: Vec<_> = scalars(reshape, (&cut, tile), rank, sending).into_iter().map(chunks).collect();
        spread(&list, reshape.from.ranks())
    };
    let encoded = encoding.map(|encoding| EncodedChunks {
        slot: encoding.chunk_bytes(CHUNK_SCALARS),
        varies: encoding.varies,
        to: chunks(encoding, true),
        from: chunks(encoding, false),
    });
    Volumes { encoded, ..Volumes::new(table, rank) }
}

/// The ranks that a rank sends to, or receives from, in a tile, and the scalars.
fn scalars(
    reshape: &Reshape,
    (cut, tile): (&Tiles, usize),
    rank: usize,
    sending: bool,
) -> Vec<(usize, usize)> {
    let element_scalars = width(reshape.real) * cut.arrays(tile).len();
    let (own, others) = if sending { (&reshape.from, &reshape.to) } else { (&reshape.to, &reshape.from) };
    let segment = |(peer, both): (usize, Box3)| {
        let (source, target) = if sending { (rank, peer) } else { (peer, rank) };
        let part = match cut.along {
            1 => both,
            _ => cut.between(&reshape.from.boxes()[source], &reshape.to.boxes()[target], tile),
        };
        (peer, part.volume() * element_scalars)
    };
    let met = others.intersections(&own.boxes()[rank]).into_iter().filter(|&(peer, _)| peer != rank);
    met.map(segment).filter(|(_, scalars)| *scalars > 0).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::choice::{Choice, Tiling};
    use crate::design::design;
    use crate::layout::LayoutSpec;
    use crate::messages::Mechanism;
    use crate::problem::Problem;
    use crate::schedule::{Direction, ScheduleOptions, schedule};
    use crate::tiles;
    use ferrier_kernel::Precision;

    /// Rows and columns that are computed on demand are those of the table of all pairs of ranks.
    #[test]
    fn rows_and_columns_are_those_of_the_dense_table() {
        let layouts = [LayoutSpec::bricks, || LayoutSpec::slabs(2), || LayoutSpec::pencils(1)];
        for (turn, ranks) in [2, 3, 4, 7, 8, 12].into_iter().enumerate() {
            let problem = Problem::c2c([8, 13, 10]).batch(1 + turn % 3).input(layouts[turn % 3]());
            let problem = problem.output(layouts[(turn + 1) % 3]());
            let recipe = design(&problem, &Choice::default(), Precision::F64, ranks).unwrap();
            let tilings = [Tiling::new(3 * (turn % 2))];
            let schedule = schedule(
                &recipe,
                ScheduleOptions {
                    direction: Direction::Forward,
                    in_place: false,
                    alike: true,
                    with_operator: false,
                    mechanism: Mechanism::Messages,
                    exposed_ends: true,
                    tilings: &tilings,
                    fuse: &|_: &[_], _: &_| false,
                    aside: &|_, _| false,
                },
            );
            let cuts = tiles::cut(&schedule, &tilings, problem.batch, 1 + turn % 2);
            let nodes = (0..ranks).map(|rank| rank / 2).collect();
            let coding = Encoding::new(std::sync::Arc::new(|scalars| 3 * scalars + 1), true, Some(nodes));
            for (reshape, cut) in schedule.reshapes.iter().zip(&cuts) {
                for (tile, encoding) in
                    (0..cut.count()).flat_map(|tile| [(tile, None), (tile, Some(&coding))])
                {
                    let scalars = |from: usize, to: usize| {
                        let part = cut.between(&reshape.from.boxes()[from], &reshape.to.boxes()[to], tile);
                        part.volume() * width(reshape.real) * cut.arrays(tile).len()
                    };
                    let bytes = |from: usize, to: usize| match encoding {
                        _ if from == to => 0,
                        Some(coding) if coding.is_encoded(from, to) => {
                            coding.segment_bytes(scalars(from, to))
                        }
                        _ => 8 * scalars(from, to),
                    };
                    let dense = |bytes: &dyn Fn(usize) -> usize| (0..ranks).map(bytes).collect::<Vec<_>>();
                    for rank in 0..ranks {
                        let own = volumes(reshape, (cut, tile), rank, 8, encoding);
                        assert_eq!(own.to, dense(&|to| bytes(rank, to)));
                        assert_eq!(own.from, dense(&|from| bytes(from, rank)));
                        for other in 0..ranks {
                            assert_eq!(spread(&own.table.row(other), ranks), dense(&|to| bytes(other, to)));
                        }
                        let pairs = (0..ranks).flat_map(|from| (0..ranks).map(move |to| (from, to)));
                        let largest = pairs.map(|(from, to)| bytes(from, to)).max().unwrap_or(0);
                        assert_eq!(own.table.largest(), largest);
                        let Some(encoded) = own.encoded else { continue };
                        assert_eq!(encoded.to, dense(&|to| coding.chunks(rank, to, scalars(rank, to))));
                        assert_eq!(
                            encoded.from,
                            dense(&|from| coding.chunks(from, rank, scalars(from, rank)))
                        );
                    }
                }
            }
        }
    }
}
