//! What a plan says it did, and when.

use ferrier::{Choice, Event, EventKind, LayoutSpec, Overlap, Planner, Problem, Tiling};
use ferrier_test::watchdog;

/// The events of a forward transform on two ranks.
fn events(after: bool) -> Vec<Vec<Event>> {
    let problem = Problem::c2c([8, 8, 12]).input(LayoutSpec::slabs(0)).output(LayoutSpec::slabs(1));
    let tiling = Tiling::new(5).cut(2).window(2).polls(1).after(after);
    let choice = Choice::new().exchange("all_to_allv").axes([2, 1, 0]).overlap(Overlap::uniform(tiling));
    let run = |comm: ferrier::Comm| {
        let mut plan = Planner::new(&problem).choice(choice.clone()).draft::<f64>(&comm)?.build()?;
        assert!(plan.events().is_empty());
        let (input, mut output) = (plan.make_input()?, plan.make_output()?);
        plan.forward(&input, &mut output)?;
        plan.forward(&input, &mut output)?;
        Ok(plan.events())
    };
    ferrier::ranks(2).run(run).unwrap()
}

fn tiles(events: &[Event], kind: EventKind, name: &str) -> Vec<Option<usize>> {
    let own = events.iter().filter(|event| event.kind == kind && event.name.starts_with(name));
    own.map(|event| event.tile).collect()
}

#[test]
fn every_tile_is_seen_once_and_in_order() {
    let _watchdog = watchdog(60);
    for after in [true, false] {
        for events in events(after) {
            let all = [Some(0), Some(1), Some(2)];
            assert_eq!(tiles(&events, EventKind::Post, ""), all);
            assert_eq!(tiles(&events, EventKind::Wait, ""), all);
            assert_eq!(tiles(&events, EventKind::Transform, "fft axis 1"), all);
            // Only where both sides may overlap does the pass after the reshape go by tiles.
            let last = tiles(&events, EventKind::Transform, "fft axis 0");
            assert_eq!(last, if after { all.to_vec() } else { vec![None] });
            // Half of a rank's 8 x 4 x 12 complex numbers come from the other one.
            let posted = events.iter().filter(|event| event.kind == EventKind::Post);
            assert_eq!(posted.map(|event| event.bytes).collect::<Vec<_>>(), [1280, 1280, 512]);
            assert!(events.iter().all(|event| 0.0 <= event.test_ms && event.test_ms <= event.ms()));
            assert!(events.windows(2).all(|two| two[0].end_ms <= two[1].start_ms), "{events:?}");
            let wired = |event: &&Event| event.wired;
            assert_eq!(events.iter().filter(wired).count(), if after { 6 } else { 4 });
        }
    }
}
