//! What must hold for every sequence of pushes, pops and cancellations, in every order and under every law.

use std::collections::BTreeMap;
use std::time::Duration;

use proptest::prelude::*;
use tidegate_core::queue::{
    Adaptive, Bounds, Codel, DropLaw, Entry, Fair, Handle, Left, Order, Queue, RequestCodel,
};
use tidegate_core::{Criticality, Moment, Reason};

const MAX_WAIT: Duration = Duration::from_millis(100);
const MAX_ENTRIES: usize = 12;
const MAX_BYTES: u64 = 60;

#[derive(Clone, Debug)]
enum Step {
    Push { level: usize, name: u8, bytes: u64, deadline: Option<u64> },
    Pop,
    Cancel(prop::sample::Index),
    Expire,
    Expect(u64),
}

fn steps() -> impl Strategy<Value = Vec<(u64, Step)>> {
    let push = (0..4_usize, 0..6_u8, 0..20_u64, prop::option::of(0..150_u64))
        .prop_map(|(level, name, bytes, deadline)| Step::Push { level, name, bytes, deadline });
    let step = prop_oneof![
        6 => push,
        4 => Just(Step::Pop),
        1 => any::<prop::sample::Index>().prop_map(Step::Cancel),
        1 => Just(Step::Expire),
        1 => (0..40_u64).prop_map(Step::Expect),
    ];
    // Mostly together or a little later, at times after a long silence.
    let gap = prop_oneof![4 => Just(0_u64), 4 => 0..15_u64, 1 => 0..300_u64];
    prop::collection::vec((gap, step), 1..200)
}

fn orders() -> impl Strategy<Value = Order> {
    let adaptive = Adaptive::new(Duration::from_millis(30)).expect("valid");
    let short = adaptive.with_standing_wait(Duration::from_millis(10)).expect("valid");
    let fair = Fair::new(3);
    prop_oneof![
        Just(Order::Fifo),
        Just(Order::Adaptive(adaptive)),
        Just(Order::Adaptive(short)),
        Just(Order::Fair(fair)),
        Just(Order::Fair(fair.with_hand(1).expect("valid").with_lists(3).expect("valid"))),
    ]
}

fn laws() -> impl Strategy<Value = Option<DropLaw>> {
    let (target, interval) = (Duration::from_millis(5), Duration::from_millis(20));
    prop_oneof![
        Just(None),
        Just(Some(DropLaw::Codel(Codel::new(target, interval).expect("valid")))),
        Just(Some(DropLaw::Request(RequestCodel::new(target, interval).expect("valid")))),
    ]
}

/// What we know of an entry that waits, apart from the queue.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    handle: Option<Handle>,
    level: usize,
    bytes: u64,
    came: Moment,
    deadline: Option<Moment>,
    /// The last moment at which it may be served, as it was when it came.
    start_by: Moment,
}

type Everyone = BTreeMap<u64, Waiting>;

/// An entry leaves unserved: it was waiting, and its reason is true.
fn leaves(waiting: &mut Everyone, left: &Left<u64>, now: Moment) {
    let known = waiting.remove(&left.entry.payload).expect("it waited, and had not left before");
    assert_eq!(left.waited, now.since(known.came));
    match left.reason {
        Reason::WaitTooLong => assert!(left.waited > MAX_WAIT),
        Reason::DeadlinePassed => assert!(known.deadline.is_some()),
        Reason::QueueFull => assert_eq!((left.waited, known.handle), (Duration::ZERO, None)),
        Reason::Displaced | Reason::StandingQueue => assert!(left.waited <= MAX_WAIT, "time acts first"),
        reason => unreachable!("{reason:?} is no reason of a queue"),
    }
}

proptest! {
    #[test]
    fn every_entry_ends_exactly_once_and_no_bound_is_exceeded(
        order in orders(), law in laws(), steps in steps(),
    ) {
        let bounds = Bounds::new(MAX_WAIT).unwrap();
        let bounds = bounds.with_max_entries(MAX_ENTRIES).unwrap().with_max_bytes(MAX_BYTES).unwrap();
        let mut queue = Queue::new(bounds, order).unwrap();
        if let Some(law) = law {
            queue = queue.with_drop_law(law).unwrap();
        }
        let mut now = Moment::from_nanos(1_790_000_000_000_000_000);
        let mut waiting = Everyone::new();
        let mut handles = Vec::new();
        let mut expected = Duration::ZERO;
        for (number, (gap, step)) in (0_u64..).zip(steps) {
            now = now.plus(Duration::from_millis(gap));
            match step {
                Step::Push { level, name, bytes, deadline } => {
                    let deadline = deadline.map(|after| now.plus(Duration::from_millis(after)));
                    let latest = deadline.map_or(u64::MAX, |deadline| deadline.nanos());
                    let latest = latest.saturating_sub(expected.as_nanos().try_into().unwrap());
                    let start_by = now.plus(MAX_WAIT).min(Moment::from_nanos(latest));
                    let known = Waiting { handle: None, level, bytes, came: now, deadline, start_by };
                    waiting.insert(number, known);
                    let criticality = Criticality::ALL[level];
                    let entry = Entry { key: queue.key(&name), criticality, deadline, bytes, payload: number };
                    let verdict = queue.push(entry, now, |left| {
                        leaves(&mut waiting, &left, now);
                        if left.reason == Reason::Displaced {
                            assert!(left.entry.criticality <= criticality, "the more critical made room");
                        }
                    });
                    prop_assert_eq!(verdict.is_admit(), waiting.contains_key(&number));
                    if let Some(handle) = verdict.admitted() {
                        waiting.get_mut(&number).unwrap().handle = Some(handle);
                        handles.push((number, handle));
                    }
                }
                Step::Pop => {
                    let served = queue.pop(now, |left| leaves(&mut waiting, &left, now));
                    if let Some(served) = served {
                        let known = waiting.remove(&served.entry.payload).expect("served once");
                        prop_assert!(served.waited <= MAX_WAIT);
                        prop_assert!(known.deadline.is_none_or(|deadline| now.plus(expected) <= deadline));
                        prop_assert!(waiting.values().all(|other| other.level <= known.level));
                        let is_oldest = waiting.range(..served.entry.payload).all(|(_, other)| other.level < known.level);
                        prop_assert!(order != Order::Fifo || is_oldest);
                    } else {
                        prop_assert!(waiting.is_empty());
                    }
                }
                Step::Cancel(index) if !handles.is_empty() => {
                    let (number, handle) = handles[index.index(handles.len())];
                    let cancelled = queue.cancel(handle, now).map(|entry| entry.payload);
                    prop_assert_eq!(cancelled, waiting.remove(&number).map(|_| number));
                }
                Step::Cancel(_) => {}
                Step::Expire => {
                    queue.expire(now, |left| leaves(&mut waiting, &left, now));
                    prop_assert!(queue.next_leave().is_none_or(|leave| leave >= now));
                }
                Step::Expect(millis) => {
                    expected = Duration::from_millis(millis);
                    queue.expect_service(expected);
                }
            }
            prop_assert!(queue.len() <= MAX_ENTRIES && queue.bytes() <= MAX_BYTES);
            prop_assert_eq!(queue.len(), waiting.len());
            prop_assert_eq!(queue.next_leave(), waiting.values().map(|entry| entry.start_by).min());
            prop_assert_eq!(queue.bytes(), waiting.values().map(|entry| entry.bytes).sum::<u64>());
            for (index, level) in Criticality::ALL.into_iter().enumerate() {
                let count = waiting.values().filter(|entry| entry.level == index).count();
                prop_assert_eq!(queue.waiting(level), count);
            }
        }
        let served: Vec<_> = std::iter::from_fn(|| {
            queue.pop(now, |left| leaves(&mut waiting, &left, now)).map(|served| served.entry.payload)
        }).collect();
        for number in served {
            prop_assert!(waiting.remove(&number).is_some());
        }
        prop_assert!(waiting.is_empty() && queue.is_empty());
    }

    #[test]
    fn the_next_to_leave_leaves_a_nanosecond_later_and_not_sooner(
        entries in prop::collection::vec((0..20_u64, prop::option::of(0..150_u64)), 1..12),
    ) {
        let mut queue = Queue::new(Bounds::new(MAX_WAIT).unwrap(), Order::Fifo).unwrap();
        let mut now = Moment::ORIGIN;
        for (gap, deadline) in entries {
            now = now.plus(Duration::from_millis(gap));
            let deadline = deadline.map(|after| now.plus(Duration::from_millis(after)));
            let _ = queue.push(Entry { deadline, ..Entry::new(()) }, now, drop);
        }
        while let Some(leave) = queue.next_leave() {
            let before = queue.len();
            queue.expire(leave, drop);
            prop_assert_eq!(queue.len(), before);
            queue.expire(leave.plus(Duration::from_nanos(1)), drop);
            prop_assert!(queue.len() < before);
        }
    }
}
