//! The event loop: requests walk from sources through links, gates and services, and back.
//!
//! ```text
//! Arrive ─> need ─> attempt ─> gate ─> queue ─> worker ─Finish─> (a need of its own) ─> Answer ─> need
//!            ^                                                                             │
//!            └──────────────── Retry <── the caller's manners <── TimedOut, failed, refused
//! ```
//!
//! A *need* is what somebody wants answered: a user, or a service that calls another. It makes one
//! attempt after the other. A caller that stops waiting for an attempt leaves it where it is: whatever
//! work it still causes is wasted.

mod instance;

use tidegate_core::permit::Outcome;
use tidegate_core::retry::{Advice, Attempts};
use tidegate_core::{Criticality, Moment, Verdict};
use tidegate_scenario::Ending;

use crate::agenda::Agenda;
use crate::caller::{Answer, Intent, Pass};
use crate::chance::Chance;
use crate::gate::{Arrived, Asked, Gate, Passed};
use crate::measure::Record;
use crate::slab::{Id, Slab};
use crate::spec::{Health, Link, Source, Spec};
use instance::{Instance, Site};

/// Runs a model and returns what was counted. The same seed gives the same record.
#[must_use]
pub fn run(spec: Spec, seed: u64) -> Record {
    let end = Moment::ORIGIN.plus(spec.length);
    let mut world = World::new(spec, seed);
    while let Some((now, event)) = world.agenda.pop() {
        if now >= end {
            break;
        }
        world.now = now;
        world.happen(event);
    }
    world.record
}

#[derive(Clone, Copy, Debug)]
enum Event {
    Arrive(usize),
    Finish(Id),
    Answer(Id, Answer),
    TimedOut(Id),
    Retry(Id),
    Change(usize),
    Tick,
}

/// How often limits are noted.
const TICK: std::time::Duration = std::time::Duration::from_secs(1);

/// So many users share all requests; a shedder refuses some of them and not some of everybody's.
const USERS: u32 = 10_000;

/// Whose link a need goes over.
#[derive(Clone, Copy, Debug)]
enum Owner {
    Source(usize),
    Service(usize),
}

/// Something that somebody wants answered.
#[derive(Debug)]
struct Need {
    owner: Owner,
    /// The attempt at the owner's service that waits for it.
    parent: Option<Id>,
    arrived: Moment,
    wanted: Wanted,
    tried: u32,
    made: Attempts,
    /// The attempt whose answer counts.
    current: Option<Id>,
}

/// What stays the same on the way down: for whom, how urgent, and until when.
#[derive(Clone, Copy, Debug)]
struct Wanted {
    user: u32,
    criticality: Criticality,
    deadline: Moment,
}

/// One try at one instance.
#[derive(Debug)]
struct Attempt {
    need: Id,
    site: Site,
    asked: Option<Asked>,
    /// What the caller's side gave.
    pass: Option<Pass>,
    /// What the gate gave.
    passed: Option<Passed>,
    /// Whether it came while its service hung: nobody but its caller will ever end it.
    is_stuck: bool,
}

#[derive(Debug)]
struct World {
    now: Moment,
    agenda: Agenda<Event>,
    record: Record,
    capacity: f64,
    sources: Vec<(Source, Chance)>,
    services: Vec<instance::Service>,
    changes: Vec<crate::spec::Change>,
    needs: Slab<Need>,
    attempts: Slab<Attempt>,
    /// Separate streams: see [`crate::chance`].
    work: Chance,
    choices: Chance,
    dice: Chance,
}

impl World {
    fn new(spec: Spec, seed: u64) -> Self {
        let capacity = spec.capacity();
        let stream = |number| Chance::stream(seed, number);
        let sources = spec.sources.into_iter().zip(10..).map(|(source, number)| (source, stream(number)));
        let mut world = Self {
            now: Moment::ORIGIN,
            agenda: Agenda::default(),
            record: Record::new(capacity),
            capacity,
            sources: sources.collect(),
            services: spec.services.into_iter().map(instance::Service::new).collect(),
            changes: spec.changes,
            needs: Slab::new(),
            attempts: Slab::new(),
            work: stream(1),
            choices: stream(2),
            dice: stream(3),
        };
        for (index, change) in world.changes.iter().enumerate() {
            world.agenda.note(change.at, Event::Change(index));
        }
        (0..world.sources.len()).for_each(|source| world.expect(source));
        world.agenda.note(Moment::ORIGIN.plus(TICK), Event::Tick);
        world
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Arrive(source) => self.arrive(source),
            Event::Finish(attempt) => self.finish(attempt),
            Event::Answer(attempt, answer) => self.answer(attempt, answer),
            Event::TimedOut(attempt) => self.time_out(attempt),
            Event::Retry(need) => self.attempt(need),
            Event::Change(index) => {
                let change = self.changes[index];
                self.services[change.service].health = change.health;
            }
            Event::Tick => {
                self.services.iter_mut().for_each(|service| service.tell(self.now));
                if let Some(limit) = self.services[0].limit() {
                    self.record.limit(self.now, limit, self.services[0].is_waiting_for_others());
                }
                let links = self.services.iter().filter_map(|service| service.needs.as_ref());
                let links = links.chain(self.sources.iter().map(|(source, _)| &source.link));
                self.record.trips(self.now, links.map(|link| link.manners.trips()).sum());
                self.agenda.note(self.now.plus(TICK), Event::Tick);
            }
        }
    }

    /// Notes the next arrival from a source.
    fn expect(&mut self, index: usize) {
        let (source, chance) = &mut self.sources[index];
        if let Some(at) = source.schedule.next(self.now, self.capacity, chance) {
            self.agenda.note(at, Event::Arrive(index));
        }
    }

    fn arrive(&mut self, index: usize) {
        let (source, chance) = &mut self.sources[index];
        let criticality = source.mix.draw(chance);
        let deadline = self.now.plus(source.patience);
        self.record.arrived(self.now, criticality);
        let wanted = Wanted { user: chance.below(USERS), criticality, deadline };
        self.open(Owner::Source(index), None, wanted);
        self.expect(index);
    }

    fn open(&mut self, owner: Owner, parent: Option<Id>, wanted: Wanted) {
        let (arrived, made) = (self.now, Attempts::begin(self.now));
        let need = Need { owner, parent, arrived, wanted, tried: 0, made, current: None };
        let id = self.needs.insert(need);
        self.attempt(id);
    }

    /// The link of an owner, and the dice its manners may roll.
    fn link(&mut self, owner: Owner) -> (&mut Link, &mut Chance) {
        let link = match owner {
            Owner::Source(index) => &mut self.sources[index].0.link,
            Owner::Service(index) => {
                self.services[index].needs.as_mut().expect("only services that call others own needs")
            }
        };
        (link, &mut self.dice)
    }

    /// Makes the next attempt of a need, unless the caller's own side says no.
    fn attempt(&mut self, id: Id) {
        let now = self.now;
        let Some(need) = self.needs.get_mut(id) else { return };
        let (owner, wanted) = (need.owner, need.wanted);
        let intent = Intent { criticality: wanted.criticality, tried: need.tried };
        need.tried += 1;
        let (link, dice) = self.link(owner);
        let (target, timeout) = (link.target, link.timeout);
        let pass = match link.manners.send(now, &intent, dice) {
            Verdict::Admit(pass) => pass,
            Verdict::Refuse(_) => {
                self.record.refusal(now);
                return self.consider(id, Answer::NotSent);
            }
        };
        let deadline = wanted.deadline.min(now.plus(timeout));
        let instance = self.choices.below(self.services[target].count()) as usize;
        let site = Site { service: target, instance };
        let attempt =
            Attempt { need: id, site, asked: None, pass: Some(pass), passed: None, is_stuck: false };
        let attempt = self.attempts.insert(attempt);
        if let Some(need) = self.needs.get_mut(id) {
            need.current = Some(attempt);
        }
        self.agenda.note(deadline, Event::TimedOut(attempt));
        let Wanted { user, criticality, .. } = wanted;
        let asked = Asked { id: attempt, user, criticality, deadline, attempt: intent.tried };
        self.receive(asked, site);
    }

    /// An attempt reaches an instance.
    fn receive(&mut self, asked: Asked, site: Site) {
        let (now, roll) = (self.now, self.dice.roll());
        if let Some(attempt) = self.attempts.get_mut(asked.id) {
            attempt.asked = Some(asked);
        }
        if site.service + 1 == self.services.len() {
            self.record.bottom_attempt(now);
        }
        self.count_inside(site.service, 1);
        let service = &mut self.services[site.service];
        service.instances[site.instance].gate.seen(&asked);
        let Health { is_hanging, refusing, .. } = service.health;
        if site.instance < refusing as usize {
            return self.refuse(&asked, site);
        }
        if is_hanging {
            if let Some(attempt) = self.attempts.get_mut(asked.id) {
                attempt.is_stuck = true;
            }
            return;
        }
        let mut refused = Vec::new();
        match service.instances[site.instance].gate.arrive(now, asked, roll, &mut refused) {
            Arrived::Pass(passed) => self.enter(passed, site),
            Arrived::Wait => {}
            Arrived::Refuse => self.refuse(&asked, site),
        }
        refused.iter().for_each(|asked| self.refuse(asked, site));
        self.advance(site);
    }

    fn count_inside(&mut self, service: usize, by: i32) {
        let inside = &mut self.services[service].inside;
        *inside = inside.saturating_add_signed(by);
        if service + 1 == self.services.len() {
            self.record.inside(self.now, self.services[service].inside);
        }
    }

    fn refuse(&mut self, asked: &Asked, site: Site) {
        self.record.refusal(self.now);
        let service = &mut self.services[site.service];
        let cost = service.refusal_cost;
        let instance = &mut service.instances[site.instance];
        instance.debt += cost;
        let advice = instance.gate.advice();
        if advice == Advice::Never {
            self.record.dont_retry(self.now);
        }
        self.agenda.note(self.now, Event::Answer(asked.id, Answer::Refused(advice)));
    }

    /// An attempt has passed the gate and joins the queue of its instance.
    fn enter(&mut self, passed: Passed, site: Site) {
        let id = passed.id;
        let Some(attempt) = self.attempts.get_mut(id) else { return };
        attempt.passed = Some(passed);
        self.services[site.service].instances[site.instance].queue.push_back(id);
        self.work(site);
    }

    /// Gives work to every free worker of an instance.
    fn work(&mut self, site: Site) {
        let service = &mut self.services[site.service];
        while let Some((attempt, takes)) = service.start(self.now, site.instance, &mut self.work) {
            self.agenda.note(self.now.plus(takes), Event::Finish(attempt));
        }
    }

    /// A worker has done its part of an attempt.
    fn finish(&mut self, id: Id) {
        let Some(attempt) = self.attempts.get(id) else { return };
        let (site, asked) = (attempt.site, attempt.asked);
        let service = &mut self.services[site.service];
        service.instances[site.instance].turn(self.now, -1);
        let Health { delay, failing, .. } = service.health;
        let calls = service.needs.is_some();
        self.work(site);
        match asked {
            Some(asked) if calls => {
                let Asked { user, criticality, deadline, .. } = asked;
                self.open(Owner::Service(site.service), Some(id), Wanted { user, criticality, deadline });
            }
            Some(_) | None => {
                let answer = if self.choices.happens(failing) { Answer::Failed } else { Answer::Ok };
                self.agenda.note(self.now.plus(delay), Event::Answer(id, answer));
            }
        }
    }

    /// An instance answers an attempt; whoever waited in the gate may pass.
    fn answer(&mut self, id: Id, answer: Answer) {
        let Some(attempt) = self.attempts.remove(id) else { return };
        let now = self.now;
        self.count_inside(attempt.site.service, -1);
        let gate = self.gate(attempt.site);
        if let Some(passed) = attempt.passed {
            let outcome = match answer {
                Answer::Ok if attempt.pass.is_none() => Outcome::Abandoned,
                Answer::Ok => Outcome::Ok,
                Answer::Failed | Answer::TimedOut => Outcome::Failed,
                Answer::Refused(_) | Answer::NotSent => Outcome::Overloaded,
            };
            if let Some(permit) = passed.permit {
                permit.complete(now, outcome);
            }
            gate.ended(now, outcome);
        }
        self.advance(attempt.site);
        self.hear(attempt.need, id, attempt.pass, answer);
    }

    /// Lets pass who may.
    fn advance(&mut self, site: Site) {
        let mut refused = Vec::new();
        let now = self.now;
        while let Some(passed) = self.gate(site).next(now, &mut refused) {
            self.enter(passed, site);
        }
        refused.iter().for_each(|asked| self.refuse(asked, site));
    }

    fn gate(&mut self, site: Site) -> &mut dyn Gate {
        let instance: &mut Instance = &mut self.services[site.service].instances[site.instance];
        instance.gate.as_mut()
    }

    /// A caller stops waiting. The attempt stays where it is, unless its service hung.
    fn time_out(&mut self, id: Id) {
        let Some(attempt) = self.attempts.get_mut(id) else { return };
        let (need, site, pass) = (attempt.need, attempt.site, attempt.pass.take());
        if attempt.is_stuck {
            self.attempts.remove(id);
            self.count_inside(site.service, -1);
        }
        self.hear(need, id, pass, Answer::TimedOut);
    }

    /// The caller learns how an attempt ended, if it still waits for that one.
    fn hear(&mut self, need: Id, attempt: Id, pass: Option<Pass>, answer: Answer) {
        let now = self.now;
        let Some(waiting) = self.needs.get_mut(need).filter(|need| need.current == Some(attempt)) else {
            return;
        };
        waiting.current = None;
        let owner = waiting.owner;
        if let Some(pass) = pass {
            self.link(owner).0.manners.answered(now, pass, answer);
        }
        self.consider(need, answer);
    }

    /// Tries again, or ends the need.
    fn consider(&mut self, id: Id, answer: Answer) {
        let now = self.now;
        let Some(need) = self.needs.get_mut(id) else { return };
        let (owner, wanted, mut made) = (need.owner, need.wanted, need.made);
        if answer != Answer::Ok {
            let intent = Intent { criticality: wanted.criticality, tried: need.tried };
            let (link, dice) = self.link(owner);
            let pause = link.manners.retry(now, &intent, &mut made, answer, dice);
            if let Some(at) = pause.map(|pause| now.plus(pause)).filter(|at| *at < wanted.deadline) {
                if let Some(need) = self.needs.get_mut(id) {
                    need.made = made;
                }
                return self.agenda.note(at, Event::Retry(id));
            }
        }
        self.close(id, answer);
    }

    fn close(&mut self, id: Id, answer: Answer) {
        let Some(need) = self.needs.remove(id) else { return };
        if let Some(parent) = need.parent {
            let answer = self.link(need.owner).0.manners.give_up(answer);
            return self.agenda.note(self.now, Event::Answer(parent, answer));
        }
        let ending = match answer {
            Answer::Ok if self.now <= need.wanted.deadline => Ending::Good,
            Answer::Ok => Ending::Late,
            Answer::Failed | Answer::TimedOut => Ending::Failed,
            Answer::Refused(_) | Answer::NotSent => Ending::Refused,
        };
        self.record.ended(need.arrived, self.now, need.wanted.criticality, ending);
    }
}
