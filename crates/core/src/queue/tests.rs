use super::*;
use crate::units::{Cost, Quota};

fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn at(moment: u64) -> Moment {
    Moment::ORIGIN.plus(millis(moment))
}

fn bounds(max_wait: u64) -> Bounds {
    Bounds::new(millis(max_wait)).unwrap()
}

fn adaptive(interval: u64) -> Order {
    Order::Adaptive(Adaptive::new(millis(interval)).unwrap())
}

/// A queue and everything that left it unserved, as payload and reason.
struct Watched {
    queue: Queue<u64>,
    left: Vec<(u64, Reason)>,
}

impl Watched {
    fn new(bounds: Bounds, order: Order) -> Self {
        Self { queue: Queue::new(bounds, order).unwrap(), left: Vec::new() }
    }

    fn push(&mut self, entry: Entry<u64>, moment: u64) -> Verdict<Handle> {
        self.queue.push(entry, at(moment), |left| self.left.push((left.entry.payload, left.reason)))
    }

    fn pop(&mut self, moment: u64) -> Option<u64> {
        let served = self.queue.pop(at(moment), |left| self.left.push((left.entry.payload, left.reason)));
        served.map(|served| served.entry.payload)
    }

    fn drain(&mut self, moment: u64) -> Vec<u64> {
        std::iter::from_fn(|| self.pop(moment)).collect()
    }
}

fn of(criticality: Criticality, payload: u64) -> Entry<u64> {
    Entry { criticality, ..Entry::new(payload) }
}

#[test]
fn one_worker_serves_five_as_in_the_example() {
    let mut watched = Watched::new(bounds(100), Order::Fifo);
    watched.queue.expect_service(millis(40));
    for payload in 1..=5 {
        let deadline = (payload == 3).then(|| at(90));
        assert!(watched.push(Entry { deadline, ..Entry::new(payload) }, 0).is_admit());
    }
    assert_eq!(watched.pop(0), Some(1));
    assert_eq!(watched.queue.next_leave(), Some(at(50)));
    assert_eq!(watched.pop(40), Some(2));
    assert!(watched.left.is_empty());
    assert_eq!(watched.pop(80), Some(4));
    assert_eq!(watched.left, [(3, Reason::DeadlinePassed)]);
    assert_eq!(watched.pop(120), None);
    assert_eq!(watched.left, [(3, Reason::DeadlinePassed), (5, Reason::WaitTooLong)]);
    assert_eq!(watched.queue.next_leave(), None);
}

#[test]
fn an_entry_is_served_at_its_last_moment_and_not_after() {
    let mut watched = Watched::new(bounds(100), Order::Fifo);
    for payload in [1, 2] {
        assert!(watched.push(Entry::new(payload), 0).is_admit());
    }
    assert_eq!(watched.pop(100), Some(1));
    assert_eq!(watched.pop(101), None);
    assert_eq!(watched.left, [(2, Reason::WaitTooLong)]);
}

#[test]
fn a_deadline_that_cannot_be_met_is_refused_at_the_door() {
    let mut watched = Watched::new(bounds(100), Order::Fifo);
    watched.queue.expect_service(millis(40));
    let entry = Entry { deadline: Some(at(39)), ..Entry::new(1) };
    assert_eq!(watched.push(entry, 0), Verdict::refuse(Reason::DeadlinePassed, Retry::Never));
    assert_eq!(watched.left, [(1, Reason::DeadlinePassed)]);
    // What was acceptable becomes hopeless when serving takes longer than it did.
    assert!(watched.push(Entry { deadline: Some(at(80)), ..Entry::new(2) }, 0).is_admit());
    watched.queue.expect_service(millis(90));
    assert_eq!(watched.pop(0), None);
    assert_eq!(watched.left[1], (2, Reason::DeadlinePassed));
}

#[test]
fn levels_are_served_in_strict_order() {
    let mut watched = Watched::new(bounds(100), Order::Fifo);
    for (payload, level) in (0..).zip(Criticality::ALL) {
        assert!(watched.push(of(level, payload), 0).is_admit());
        assert!(watched.push(of(level, payload + 10), 0).is_admit());
    }
    assert_eq!(watched.drain(0), [3, 13, 2, 12, 1, 11, 0, 10]);
}

#[test]
fn a_worker_serves_the_newest_of_a_standing_queue_as_in_the_example() {
    let mut watched = Watched::new(bounds(1_000), adaptive(100));
    let mut served = Vec::new();
    for moment in (0..=150).step_by(10) {
        if moment % 20 == 0 {
            assert!(watched.push(Entry::new(moment), moment).is_admit());
        }
        if moment % 30 == 0 {
            served.push(watched.pop(moment).unwrap());
        }
    }
    assert_eq!(served, [0, 20, 40, 60, 80, 140]);
    assert!(watched.queue.is_newest_first(Criticality::Critical, at(150)));
    // Once it has been empty, age counts again.
    assert_eq!(watched.drain(150), [120, 100]);
    for payload in [1, 2] {
        assert!(watched.push(Entry::new(payload), 160).is_admit());
    }
    assert_eq!(watched.drain(170), [1, 2]);
}

#[test]
fn at_low_load_nobody_starves_in_a_queue_that_may_serve_the_newest() {
    // One in 10 ms, served in 7 ms, with a burst of five every second: deadline 100 ms.
    let mut watched = Watched::new(bounds(100), adaptive(100));
    let (mut free_at, mut pushed, mut longest) = (0, 0_u64, Duration::ZERO);
    for moment in 0..60_000 {
        let coming = u64::from(moment % 10 == 0) + 4 * u64::from(moment % 1_000 == 0);
        for _ in 0..coming {
            pushed += 1;
            assert!(watched.push(Entry::new(pushed), moment).is_admit());
        }
        if moment >= free_at
            && let Some(served) = watched.queue.pop(at(moment), |left| panic!("{left:?} starved"))
        {
            longest = longest.max(served.waited);
            free_at = moment + 7;
        }
    }
    assert!(watched.left.is_empty() && longest <= millis(35), "{longest:?}");
}

#[test]
fn newest_first_answers_in_time_where_oldest_first_answers_late() {
    // Twice as much as one worker can do; callers give up after 60 ms, which nobody told us.
    let in_time = |order| {
        let mut watched = Watched::new(bounds(200), order);
        let mut in_time = 0;
        for moment in 0..10_000 {
            if moment % 5 == 0 {
                assert!(watched.push(Entry::new(moment), moment).is_admit());
            }
            if moment % 10 == 0 && watched.pop(moment).is_some_and(|came| moment - came + 10 <= 60) {
                in_time += 1;
            }
        }
        in_time
    };
    let (oldest_first, newest_first) = (in_time(Order::Fifo), in_time(adaptive(100)));
    assert!(oldest_first < 20, "{oldest_first} of 1000");
    assert!(newest_first > 980, "{newest_first} of 1000");
}

#[test]
fn while_a_queue_stands_those_without_a_chance_hear_it_soon_and_the_worker_is_never_idle() {
    let order = Order::Adaptive(Adaptive::new(millis(100)).unwrap().with_standing_wait(millis(5)).unwrap());
    let mut watched = Watched::new(bounds(500), order);
    // One in 20 ms, served in 50 ms: at most turns even the newest is older than 5 ms.
    let mut served = 0;
    for moment in 0..10_000 {
        if moment % 20 == 7 {
            assert!(watched.push(Entry::new(moment), moment).is_admit());
        }
        if moment % 50 == 0 && moment > 0 {
            assert!(watched.pop(moment).is_some(), "idle at {moment}");
            served += 1;
            let is_short = watched.queue.len() <= 6;
            assert!(moment < 200 || is_short, "{} wait at {moment}", watched.queue.len());
        }
    }
    assert_eq!(served, 199);
    assert!(watched.left.iter().all(|(_, reason)| *reason == Reason::StandingQueue));
}

#[test]
fn the_newest_of_a_standing_queue_is_spared_however_old_it_is() {
    let order = Order::Adaptive(Adaptive::new(millis(100)).unwrap().with_standing_wait(millis(5)).unwrap());
    let mut watched = Watched::new(bounds(500), order);
    for moment in [0, 50] {
        assert!(watched.push(Entry::new(moment), moment).is_admit());
    }
    assert_eq!(watched.pop(160), Some(50));
    assert_eq!(watched.left, [(0, Reason::StandingQueue)]);
}

#[test]
fn after_a_silence_a_burst_is_served_by_age() {
    let mut watched = Watched::new(bounds(500), adaptive(100));
    assert!(watched.push(Entry::new(0), 0).is_admit());
    assert_eq!(watched.pop(0), Some(0));
    for payload in [1, 2, 3] {
        assert!(watched.push(Entry::new(payload), 10_000).is_admit());
    }
    assert_eq!(watched.drain(10_050), [1, 2, 3]);
}

#[test]
fn the_time_bound_acts_before_the_count() {
    // 20 000 a second are served, 40 000 come, for half a second at most. The default count holds.
    let served_a_milli = 20;
    let run = |bounds: Bounds| {
        let mut queue = Queue::new(bounds, Order::Fifo).unwrap();
        let (mut late, mut full, mut in_time) = (0, 0, 0);
        let mut count = |left: Left<()>| match left.reason {
            Reason::WaitTooLong => late += 1,
            Reason::QueueFull => full += 1,
            reason => panic!("{reason:?}"),
        };
        for moment in 0..2_000 {
            // In bursts: what comes within 20 ms comes at once, and then at the rate of serving.
            let coming = if moment % 20 == 0 { 20 * served_a_milli } else { 0 };
            for _ in 0..coming {
                let _ = queue.push(Entry::new(()), at(moment), &mut count);
            }
            for _ in 0..served_a_milli {
                in_time += u32::from(queue.pop(at(moment), &mut count).is_some());
            }
        }
        (late, full, in_time)
    };
    // Everything that comes can be served. A count of 100 refuses three of four; by time, nobody.
    let (_, full, in_time) = run(bounds(500).with_max_entries(100).unwrap());
    assert_eq!((full, in_time), (30_000, 10_000));
    assert_eq!(run(bounds(500)), (0, 0, 40_000));
    let served = Quota::per_second(Cost::of(20_000)).unwrap();
    assert!(bounds(500).outlasts(served).is_ok());
    let problem = bounds(500).with_max_entries(9_999).unwrap().outlasts(served).unwrap_err();
    assert_eq!((problem.field, problem.value.as_str()), ("max_entries", "9999"));
}

#[test]
fn without_room_the_one_served_last_leaves_be_it_the_newcomer() {
    let mut watched = Watched::new(bounds(100).with_max_entries(2).unwrap(), Order::Fifo);
    assert!(watched.push(of(Criticality::Sheddable, 1), 0).is_admit());
    assert!(watched.push(of(Criticality::Sheddable, 2), 10).is_admit());
    let full = Verdict::refuse(Reason::QueueFull, Retry::After(millis(80) + Duration::from_nanos(1)));
    assert_eq!(watched.push(of(Criticality::Sheddable, 3), 20), full);
    assert!(watched.push(of(Criticality::Critical, 4), 20).is_admit());
    assert!(watched.push(of(Criticality::Critical, 5), 20).is_admit());
    assert!(!watched.push(of(Criticality::SheddablePlus, 6), 20).is_admit());
    let full = Reason::QueueFull;
    assert_eq!(watched.left, [(3, full), (2, Reason::Displaced), (1, Reason::Displaced), (6, full)]);
    // While a queue stands, the oldest would be served last.
    let mut watched = Watched::new(bounds(100).with_max_entries(2).unwrap(), adaptive(10));
    for (payload, moment) in [(1, 0), (2, 5), (3, 11)] {
        assert!(watched.push(Entry::new(payload), moment).is_admit());
    }
    assert_eq!(watched.left, [(1, Reason::Displaced)]);
}

#[test]
fn bytes_are_bounded_and_nobody_leaves_in_vain() {
    let sized = |criticality, bytes, payload| Entry { bytes, ..of(criticality, payload) };
    let mut watched = Watched::new(bounds(100).with_max_bytes(10).unwrap(), Order::Fifo);
    assert!(watched.push(sized(Criticality::Sheddable, 3, 1), 0).is_admit());
    assert!(watched.push(sized(Criticality::Sheddable, 3, 2), 0).is_admit());
    assert!(watched.push(sized(Criticality::Critical, 4, 3), 0).is_admit());
    // Even without both sheddable ones, 7 more would not fit.
    assert!(!watched.push(sized(Criticality::Critical, 7, 4), 0).is_admit());
    assert_eq!(watched.queue.bytes(), 10);
    assert!(watched.push(sized(Criticality::Critical, 6, 5), 0).is_admit());
    let never = Verdict::refuse(Reason::QueueFull, Retry::Never);
    assert_eq!(watched.push(sized(Criticality::CriticalPlus, 11, 6), 0), never);
    let (full, displaced) = (Reason::QueueFull, Reason::Displaced);
    assert_eq!(watched.left, [(4, full), (2, displaced), (1, displaced), (6, full)]);
    assert_eq!((watched.queue.bytes(), watched.queue.len()), (10, 2));
}

#[test]
fn a_cancelled_entry_leaves_once_and_its_handle_fits_no_other() {
    let mut watched = Watched::new(bounds(100), Order::Fifo);
    let first = watched.push(Entry::new(1), 0).admitted().unwrap();
    assert_eq!(watched.queue.cancel(first, at(1)).unwrap().payload, 1);
    let second = watched.push(Entry::new(2), 2).admitted().unwrap();
    assert_ne!(first, second);
    assert!(watched.queue.cancel(first, at(3)).is_none());
    assert_eq!(watched.drain(4), [2]);
    assert!(watched.queue.cancel(second, at(5)).is_none());
    assert!(watched.left.is_empty());
}

#[test]
fn keys_take_turns_as_in_the_example() {
    let fair = Fair::new(7).with_hand(2).unwrap().with_lists(4).unwrap();
    let queue = Queue::<u64>::new(bounds(100).with_max_entries(6).unwrap(), Order::Fair(fair)).unwrap();
    // Names whose hands are those of the example, found by looking at which list is the shortest.
    let hand = |key| {
        let first = fair.shortest(key, |_| 0);
        [first, fair.shortest(key, |list| usize::from(list == first))]
    };
    let key_with = |wanted: [usize; 2]| {
        (0..1_000_u64).map(|name| queue.key(&name)).find(|key| hand(*key) == wanted).unwrap()
    };
    let (greedy, other) = (key_with([0, 1]), key_with([2, 1]));
    let mut watched = Watched { queue, left: Vec::new() };
    for payload in 1..=6 {
        assert!(watched.push(Entry { key: greedy, ..Entry::new(payload) }, 0).is_admit());
    }
    assert!(watched.push(Entry { key: other, ..Entry::new(70) }, 0).is_admit());
    assert!(watched.push(Entry { key: greedy, ..Entry::new(8) }, 0).is_admit());
    assert_eq!(watched.left, [(6, Reason::Displaced), (5, Reason::Displaced)]);
    assert_eq!(watched.drain(0), [1, 2, 70, 3, 4, 8]);
}

#[test]
fn a_greedy_key_does_not_starve_the_others() {
    // One serves 1 a ms. The greedy key sends 20 a ms, nine others one in 20 ms each.
    let mut queue = Queue::new(bounds(50), Order::Fair(Fair::new(1))).unwrap();
    let mut waits = [Duration::ZERO; 10];
    let (mut sent, mut answered, mut lost) = ([0_u32; 10], [0_u32; 10], [0_u32; 10]);
    for moment in 0..5_000_u64 {
        for (name, sent) in sent.iter_mut().enumerate() {
            let coming = if name == 0 { 20 } else { u32::from(moment % 20 == name as u64) };
            *sent += coming;
            for _ in 0..coming {
                let entry = Entry { key: queue.key(&name), ..Entry::new(name) };
                let _ = queue.push(entry, at(moment), |left| lost[left.entry.payload] += 1);
            }
        }
        let served = queue.pop(at(moment), |left| lost[left.entry.payload] += 1).unwrap();
        answered[served.entry.payload] += 1;
        waits[served.entry.payload] = waits[served.entry.payload].max(served.waited);
    }
    assert!(answered[0] > 2_000, "the greedy key has the rest: {answered:?}");
    for name in 1..10 {
        // All but one that may have come too late to be served here.
        assert!(lost[name] == 0 && answered[name] + 1 >= sent[name], "{name}: {answered:?}");
        assert!(waits[name] < millis(20), "{waits:?}");
    }
}

#[test]
fn a_law_drops_from_the_level_that_stands_and_from_no_other() {
    let law = DropLaw::Request(RequestCodel::new(millis(5), millis(100)).unwrap());
    let queue = Queue::new(bounds(500), Order::Fifo).unwrap().with_drop_law(law).unwrap();
    let mut watched = Watched { queue, left: Vec::new() };
    // One serves 1 a ms: half of it goes to critical requests, and 1 sheddable a ms comes.
    for moment in 0..2_000 {
        if moment % 2 == 0 {
            assert!(watched.push(of(Criticality::Critical, 1), moment).is_admit());
        }
        assert!(watched.push(of(Criticality::Sheddable, 0), moment).is_admit());
        assert!(watched.pop(moment).is_some());
    }
    assert!(watched.left.iter().all(|(payload, _)| *payload == 0), "critical requests were dropped");
    let dropped = watched.left.iter().filter(|(_, reason)| *reason == Reason::StandingQueue).count();
    assert_eq!(dropped, watched.left.len(), "the law acted before the time was up");
    assert!((800..1_000).contains(&dropped), "{dropped}");
    assert!(watched.queue.len() < 30, "{} still wait", watched.queue.len());
}

#[test]
fn a_law_spares_the_last_one_waiting() {
    let law = DropLaw::Request(RequestCodel::new(millis(5), millis(100)).unwrap());
    let queue = Queue::new(bounds(500), Order::Fifo).unwrap().with_drop_law(law).unwrap();
    let mut watched = Watched { queue, left: Vec::new() };
    for payload in 1..=5 {
        assert!(watched.push(Entry::new(payload), 0).is_admit());
    }
    // An interval in which both waited long, one that begins, and then the verdict counts.
    assert_eq!([watched.pop(50), watched.pop(60), watched.pop(151)], [1, 2, 3].map(Some));
    assert_eq!(watched.pop(160), Some(5));
    assert_eq!(watched.left, [(4, Reason::StandingQueue)]);
}

#[test]
fn contradictory_settings_are_refused() {
    assert_eq!(Bounds::new(Duration::ZERO).unwrap_err().field, "max_wait");
    assert_eq!(Bounds::new(Duration::from_secs(601)).unwrap_err().field, "max_wait");
    assert_eq!(bounds(1).with_max_entries(0).unwrap_err().field, "max_entries");
    assert_eq!(bounds(1).with_max_bytes(0).unwrap_err().field, "max_bytes");
    assert_eq!(Adaptive::new(Duration::ZERO).unwrap_err().field, "interval");
    let order = Adaptive::new(millis(100)).unwrap();
    assert_eq!(order.with_standing_wait(millis(100)).unwrap_err().field, "standing_wait");
    let order = Order::Adaptive(order.with_standing_wait(millis(50)).unwrap());
    assert_eq!(Queue::<()>::new(bounds(50), order).unwrap_err().field, "standing_wait");
    let codel = |target| Codel::new(millis(target), millis(100)).unwrap();
    let queue = || Queue::<()>::new(bounds(20), Order::Fifo).unwrap();
    assert_eq!(queue().with_drop_law(DropLaw::Codel(codel(20))).unwrap_err().field, "target");
    let request = DropLaw::Request(RequestCodel::new(millis(10), millis(100)).unwrap());
    assert_eq!(queue().with_drop_law(request).unwrap_err().field, "slough");
    assert!(queue().with_drop_law(DropLaw::Codel(codel(5))).is_ok());
}

#[test]
fn a_longer_wait_holds_for_those_who_come_later() {
    let mut queue = Queue::new(Bounds::new(Duration::from_millis(50)).unwrap(), Order::Fifo).unwrap();
    let mut left = Vec::new();
    let start = Moment::ORIGIN;
    assert!(queue.push(Entry::new("first"), start, |who| left.push(who)).is_admit());
    queue.set_waits(Duration::from_millis(200), Duration::from_millis(200)).unwrap();
    assert!(queue.push(Entry::new("second"), start, |who| left.push(who)).is_admit());
    queue.expire(start.plus(Duration::from_millis(51)), |who| left.push(who));
    assert_eq!((left.len(), left[0].entry.payload, left[0].reason), (1, "first", Reason::WaitTooLong));
    assert_eq!(queue.len(), 1);
    assert_eq!(queue.set_waits(Duration::ZERO, Duration::ZERO).unwrap_err().field, "max_wait");
}

#[test]
fn a_burst_may_wait_longer_than_those_in_a_queue_that_stands() {
    let ms = Duration::from_millis;
    let bounds = Bounds::new(ms(50)).unwrap().with_burst_wait(ms(100)).unwrap();
    assert_eq!(bounds.with_burst_wait(ms(49)).unwrap_err().field, "burst_wait");
    let mut queue = Queue::new(bounds, Order::Fifo).unwrap();
    let at = |millis| Moment::ORIGIN.plus(ms(millis));
    let mut push = |criticality, millis| {
        let entry = Entry { criticality, ..Entry::new(millis) };
        assert!(queue.push(entry, at(millis), |_| ()).is_admit());
        queue.wait_of(criticality, at(millis))
    };
    // Sheddable ones have waited since the beginning; of the critical ones, nobody has before 60 ms.
    assert_eq!([0, 50, 51].map(|millis| push(Criticality::Sheddable, millis)), [ms(100), ms(100), ms(50)]);
    assert_eq!(push(Criticality::Critical, 60), ms(100));
    let mut left = Vec::new();
    for millis in [100, 101, 102, 151, 160, 161] {
        queue.expire(at(millis), |who| left.push((millis, who.entry.payload)));
    }
    assert_eq!(left, [(101, 0), (102, 51), (151, 50), (161, 60)]);
    assert_eq!(queue.wait_of(Criticality::Sheddable, at(161)), ms(100));
}
