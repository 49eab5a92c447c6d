use std::net::Ipv4Addr;

use tokio::io::AsyncWriteExt;

use super::*;

fn address(last: u8) -> IpAddr {
    Ipv4Addr::new(192, 0, 2, last).into()
}

/// Takes as many seats as there are, each from an address of its own.
fn all(seats: &Seats) -> Vec<Held> {
    (0..MOST).map(|number| seats.take(address(u8::try_from(number).unwrap()))).collect()
}

/// Whether somebody else has its seat.
fn is_lost(held: &Held) -> bool {
    !held.seats.lock().seats.iter().any(|seat| Arc::ptr_eq(seat, &held.seat))
}

fn lost(held: &[Held]) -> Vec<usize> {
    (0..held.len()).filter(|place| is_lost(&held[*place])).collect()
}

#[test]
fn a_newcomer_gets_the_seat_that_has_rested_longest() {
    let seats = Seats::default();
    let held = all(&seats);
    held[0].seat.moved();
    let newcomer = seats.take(address(200));
    assert!(!newcomer.seat.is_reserved);
    assert_eq!(lost(&held), [1]);
    held[3].seat.moved();
    let (_second, _third) = (seats.take(address(200)), seats.take(address(200)));
    assert_eq!(lost(&held), [1, 2, 4]);
}

#[test]
fn no_address_takes_all_of_them() {
    let seats = Seats::default();
    let other = seats.take(address(1));
    let held: Vec<_> = (0..MOST_OF_ADDRESS).map(|_| seats.take(address(2))).collect();
    assert!(lost(&held).is_empty());
    let newcomer = seats.take(address(2));
    assert_eq!(lost(&held), [0], "its own address makes room");
    assert!(!is_lost(&other) && !is_lost(&newcomer));
    let (one, next): (IpAddr, IpAddr) = ("2001:db8::1".parse().unwrap(), "2001:db8::2:1".parse().unwrap());
    let many: Vec<_> =
        (0..MOST_OF_ADDRESS + 1).map(|number| seats.take(if number % 2 == 0 { one } else { next })).collect();
    assert!(is_lost(&many[0]), "they are one");
}

#[tokio::test]
async fn those_that_are_worked_for_keep_their_seats_and_some_are_kept_for_health_checks() {
    let seats = Seats::default();
    let held = all(&seats);
    let mut working = Vec::new();
    for held in &held {
        working.push(SEAT.scope(Arc::clone(&held.seat), async { Working::begin() }).await);
    }
    let reserved: Vec<_> = (0..RESERVED).map(|_| seats.take(address(200))).collect();
    assert!(reserved.iter().all(|held| held.seat.is_reserved));
    let newcomer = seats.take(address(201));
    assert!(newcomer.seat.is_reserved);
    assert_eq!((lost(&held), lost(&reserved)), (vec![], vec![0]));
    // One is done, and has a moment of its own before it can be ended.
    working.swap_remove(7);
    let usual = seats.take(address(202));
    assert!(!usual.seat.is_reserved);
    assert_eq!(lost(&held), [7]);
}

#[test]
fn a_seat_that_is_given_back_is_there_for_others() {
    let seats = Seats::default();
    let mut held = all(&seats);
    drop(held.remove(5));
    held.push(seats.take(address(200)));
    assert!(lost(&held).is_empty());
}

#[tokio::test(start_paused = true)]
async fn who_takes_nothing_of_an_answer_is_given_up() {
    let seats = Seats::default();
    let held = seats.take(address(1));
    let (ours, theirs) = tokio::io::duplex(1024);
    let mut followed = held.stream(ours);
    let begun = tokio::time::Instant::now();
    let wrote = followed.write_all(&[b'x'; 10_000]).await;
    assert_eq!(wrote.unwrap_err().kind(), io::ErrorKind::TimedOut);
    assert_eq!(begun.elapsed(), WRITE_TIME);
    drop(theirs);
}

#[tokio::test]
async fn who_loses_its_seat_is_served_no_more() {
    let seats = Seats::default();
    let mut held = all(&seats);
    let first = held.remove(0);
    let _newcomer = seats.take(address(200));
    first.serve(std::future::pending()).await;
}
