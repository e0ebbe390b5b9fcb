//! Arrows: at once on the shooter's own screen (Reactive), announced to all players (Inverted).

use std::collections::BTreeSet;

use glam::Vec3;
use hitreg::arena::{ArenaBody, BodyKind, Solid, SolidHull};
use hitreg::game::{Category, FIRST_LOCAL_ENTITY};
use hitreg::history::Frame;
use hitreg::link::{Jitter, LinkModel};
use hitreg::units::{EntityId, Micros};
use hitreg::usercmd::{Input, buttons};

use super::stage::{CategoryStage, Screen, StageControls, TICK};
use super::{as_sent, category, delay, run};

/// A player who stands, takes the launcher, and shoots once at `shot`, upwards and to the left of the first view
/// direction.
fn archer(player: u16, at: Micros, shot: Micros, yaw_deg: f32) -> Input {
    let is_archer = player == 0;
    Input {
        viewangles: Vec3::new(-8.0, yaw_deg, 0.0),
        impulse: if is_archer && at > Micros::from_ms(500) && at < Micros::from_ms(600) { 3 } else { 0 },
        buttons: if is_archer && at >= shot && at < shot + TICK { buttons::ATTACK } else { 0 },
        ..Input::default()
    }
}

fn arrows(screen: &Screen) -> Vec<(EntityId, Category, Vec3)> {
    let arrows = screen.drawn.iter().filter(|(_, placed)| placed.body.kind == BodyKind::Arrow);
    arrows.map(|(id, placed)| (*id, placed.by.expect("by a category").category, placed.body.origin)).collect()
}

#[test]
fn the_shooters_arrow_appears_at_once_and_becomes_the_servers() {
    let mut stage = CategoryStage::new(2, &LinkModel { jitter: Jitter::Exponential(3.0), ..delay(80.0) }, 13, &[]);
    let shot = Micros::from_s(2);
    run(&mut stage, 6, |player, at| archer(player, at, shot, 30.0), as_sent);
    let screens = &stage.seats[0].screens;
    let frame = screens.iter().position(|screen| !screen.shots.is_empty()).expect("a shot");
    assert!(screens[..frame].iter().all(|screen| arrows(screen).is_empty()));
    let [(id, category, _)] = arrows(&screens[frame])[..] else { panic!("one arrow in the frame of the shot") };
    assert!(id >= FIRST_LOCAL_ENTITY && category == Category::Reactive);
    let taken =
        (frame..screens.len()).find(|at| arrows(&screens[*at]).first().is_some_and(|a| a.0 < FIRST_LOCAL_ENTITY));
    let taken = taken.expect("the server's own");
    let before_reply = screens[taken].at - screens[frame].at;
    let mut greatest_step = 0.0_f32;
    for at in frame + 1..=taken + 20 {
        let ([(.., from)], [(id, category, to)]) = (&arrows(&screens[at - 1])[..], &arrows(&screens[at])[..]) else {
            panic!("one arrow at a time")
        };
        let expected = if at < taken { Category::Reactive } else { Category::Inverted };
        assert_eq!((*category, *id >= FIRST_LOCAL_ENTITY), (expected, at < taken));
        greatest_step = greatest_step.max(from.distance(*to));
    }
    eprintln!("drawn {before_reply} before the server's word; steps of at most {greatest_step} units");
    assert!(before_reply >= Micros::from_ms(160));
    // At 900 units a second a frame is 14.4 units.
    assert!(greatest_step < 25.0, "{greatest_step}");
}

#[test]
fn predicted_arrows_have_their_own_ids() {
    let mut stage = CategoryStage::new(1, &delay(450.0), 17, &[]);
    let shot = Micros::from_s(2);
    let holds = |player, at: Micros| {
        let fires = if at >= shot { buttons::ATTACK } else { 0 };
        Input { buttons: fires, ..archer(player, at, shot, 30.0) }
    };
    run(&mut stage, 5, holds, as_sent);
    let mut most = 0;
    for screen in &stage.seats[0].screens {
        let arrows = arrows(screen);
        let ids: BTreeSet<EntityId> = arrows.iter().map(|(id, ..)| *id).collect();
        assert_eq!(ids.len(), arrows.len(), "at {}", screen.at);
        let is_local = |(id, category, _): &&(EntityId, Category, Vec3)| {
            assert_eq!(*id >= FIRST_LOCAL_ENTITY, *category == Category::Reactive);
            *category == Category::Reactive
        };
        most = most.max(arrows.iter().filter(is_local).count());
    }
    assert!(most >= 2, "{most}");
}

#[test]
fn an_arrow_that_the_server_discards_disappears() {
    // No packet of the shot's frame and the next reaches the server, and no usercmd is repeated.
    let mut stage = CategoryStage::new(1, &delay(80.0), 17, &["client.redundancy=1"]);
    let shot = Micros::from_s(2);
    let mut play = StageControls {
        input: &mut |player, at| archer(player, at, shot, 30.0),
        on_snapshot: &mut as_sent,
        reaches_server: &mut |_, at| !(shot..shot + TICK + TICK).contains(&at),
    };
    stage.run_until(Micros::from_s(5), &mut play);
    assert!(stage.truth.iter().all(|frame| frame.entities.iter().all(|(_, body)| body.kind != BodyKind::Arrow)));
    let screens = &stage.seats[0].screens;
    let frame = screens.iter().position(|screen| !screen.shots.is_empty()).expect("a shot");
    let command = screens[frame].shots[0];
    for screen in &screens[frame..] {
        assert_eq!(arrows(screen).len(), usize::from(screen.newest.ack < command), "at {}", screen.at);
    }
    let shown = screens[frame..].iter().take_while(|screen| !arrows(screen).is_empty()).count();
    eprintln!("cut after {shown} frames");
    assert!(shown > 10 && shown < 20);
}

#[test]
fn an_unconfirmed_arrow_disappears_after_a_second() {
    let mut stage = CategoryStage::new(1, &delay(80.0), 17, &[]);
    let shot = Micros::from_s(2);
    run(&mut stage, 5, |player, at| archer(player, at, shot, 30.0), |_, at, _| at < shot);
    let screens = &stage.seats[0].screens;
    let frame = screens.iter().position(|screen| !screen.shots.is_empty()).expect("a shot");
    for screen in &screens[frame..] {
        let age = screen.at - screens[frame].at;
        assert_eq!(arrows(screen).len(), usize::from(age <= Micros::from_s(1)), "{age} after the shot");
    }
}

#[test]
fn an_announced_arrow_lands_on_every_screen_as_on_the_server() {
    for (seed, off_deg) in [(13, 20.0), (14, -12.0), (15, 0.0), (16, 33.0), (17, 130.0)] {
        let link = LinkModel { jitter: Jitter::Exponential(3.0), ..delay(60.0) };
        let mut stage = CategoryStage::new(4, &link, seed, &[]);
        let yaw_deg = stage.first_yaw_deg(0) + off_deg;
        run(&mut stage, 6, |player, at| archer(player, at, Micros::from_s(2), yaw_deg), as_sent);
        let arrow_in =
            |frame: &Frame<ArenaBody>| frame.entities.iter().find(|(_, body)| body.kind == BodyKind::Arrow).copied();
        let launched = stage.truth.iter().find(|frame| arrow_in(frame).is_some()).expect("a launch");
        let has_landed = |frame: &&Frame<ArenaBody>| arrow_in(frame).is_some_and(|(_, body)| body.event_in_us == 0);
        let landed = stage.truth.iter().find(has_landed).expect("a landing");
        let (id, stuck) = arrow_in(landed).expect("an arrow");
        let flight = landed.server_time - launched.server_time;
        for (player, seat) in stage.seats.iter().enumerate() {
            let seen: Vec<&Screen> = seat.screens.iter().filter(|screen| screen.of(id).is_some()).collect();
            let is_there = |screen: &&Screen| screen.of(id).expect("it").body.origin == stuck.origin;
            let first = seen.iter().position(is_there).expect("it gets there");
            let late = seen[first].own_time() - landed.server_time;
            eprintln!("seed {seed}: flies {flight}, lands on player {player}'s screen {late} late, of {first} frames");
            // A client frame, a server tick, and the effect of jitter on the measured round trip. An arrow that the
            // client hears of after the impact has already landed in its first frame.
            let is_news = first == 0 && flight < Micros::from_ms(250);
            assert!(is_news || Micros(late.0.abs()) <= TICK + TICK, "player {player}: {late}");
            assert!(seen[first..].iter().all(is_there), "and stays there");
            assert!(seen.iter().all(|screen| category(screen, id) == Some(Category::Inverted)));
        }
    }
}

#[test]
fn an_arrow_that_will_hit_hits_on_every_screen() {
    let link = LinkModel { jitter: Jitter::Exponential(3.0), ..delay(60.0) };
    let target = EntityId(1);
    // Two players who spawn far apart with a free line between them.
    let mut stages = (1..50).map(|seed| CategoryStage::new(3, &link, seed, &[]));
    let faces = |stage: &mut CategoryStage| {
        let (from, to) = (stage.first_place(0), stage.first_place(1));
        from.distance(to) > 900.0 && stage.rules.map.solid().sweep(SolidHull::Ducked, from, to).fraction == 1.0
    };
    let mut stage = stages.find_map(|mut stage| faces(&mut stage).then_some(stage)).expect("such a pair");
    let begun = stage.first_place(1);
    let way = begun - stage.first_place(0);
    let yaw_deg = libm::atan2f(way.y, way.x).to_degrees();
    let shot = Micros::from_s(2);
    let play = |player: u16, at: Micros| {
        let flees = player == 1 && at > shot + Micros::from_ms(300);
        let viewangles = Vec3::new(0.0, yaw_deg + if player == 1 { 60.0 } else { 0.0 }, 0.0);
        let forwardmove = if flees { 400.0 } else { 0.0 };
        Input { forwardmove, viewangles, ..archer(player, at, shot, yaw_deg) }
    };
    run(&mut stage, 6, play, as_sent);
    let hurt = stage.truth.iter().find(|frame| frame.get(target).expect("a target").health == 50).expect("a hit");
    let fled = hurt.get(target).expect("a target").origin.distance(begun);
    assert!(fled > 60.0, "{fled}");
    for (player, seat) in stage.seats.iter().enumerate() {
        let arrow = |screen: &Screen| arrows(screen).first().map(|(id, ..)| *id).filter(|id| *id < FIRST_LOCAL_ENTITY);
        let lands = |screen: &&Screen| {
            arrow(screen).is_some_and(|id| {
                let received = screen.newest.frame.get(id).expect("it");
                let left = Micros(i64::from(received.event_in_us));
                screen.own_time() >= screen.newest.frame.server_time + left
            })
        };
        let screen = seat.screens.iter().find(lands).expect("it lands");
        let place = screen.of(arrow(screen).expect("it")).expect("it").body.origin;
        let victim = match player {
            1 => screen.newest.frame.get(target).expect("the target").origin,
            _ => screen.of(target).expect("the target").body.origin,
        };
        assert_eq!(place, victim, "on player {player}'s screen, after {fled} units");
    }
}

#[test]
fn an_arrow_without_effect_disappears_with_its_ack() {
    // The server acks every usercmd, but sends no arrow.
    let mut stage = CategoryStage::new(1, &delay(80.0), 17, &["server.update_hz=64"]);
    let shot = Micros::from_s(2);
    let mut play = StageControls {
        input: &mut |player, at| archer(player, at, shot, 30.0),
        on_snapshot: &mut |_, _, snapshot| {
            let mut frame = (*snapshot.frame).clone();
            frame.entities.retain(|(_, body)| body.kind != BodyKind::Arrow);
            snapshot.frame = std::sync::Arc::new(frame);
            true
        },
        reaches_server: &mut |_, _| true,
    };
    stage.run_until(Micros::from_s(4), &mut play);
    let screens = &stage.seats[0].screens;
    let frame = screens.iter().position(|screen| !screen.shots.is_empty()).expect("a shot");
    let command = screens[frame].shots[0];
    assert!(screens.iter().any(|screen| screen.newest.ack == command), "the usercmd has its own ack");
    for screen in &screens[frame..] {
        assert_eq!(arrows(screen).len(), usize::from(screen.newest.ack < command), "at {}", screen.at);
    }
}
