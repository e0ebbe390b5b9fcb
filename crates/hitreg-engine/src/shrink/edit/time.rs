//! Removes ticks, each with the time span that it ends.

use hitreg_log::record::{ArrivalRecord, ArrivalTable, Session};
use hitreg_log::sorted::SortedSet;
use hitreg_log::units::Micros;

/// Removes ticks, by their indices, with everything that was done and sent since the tick before. Everything later
/// moves to an earlier time. A remaining packet keeps its delay.
pub(super) fn remove(session: &mut Session, removed: &SortedSet<usize>) {
    if removed.is_empty() {
        return;
    }
    let cut = TimeCut::new(session.ticks.iter().map(|t| t.at).collect(), removed);
    let gone: SortedSet<_> =
        removed.iter().filter_map(|place| session.ticks.get(*place)).map(|tick| tick.tick).collect();
    for player in &mut session.players {
        player.executed.retain(|executed| !gone.contains(&executed.tick));
        player.frames.retain_mut(|frame| move_to(cut.of_client(frame.at), &mut frame.at));
        let was: Vec<(u32, Micros)> = player.sent.iter().map(|p| (p.number, p.at)).collect();
        player.sent.retain_mut(|packet| move_to(cut.of_client(packet.at), &mut packet.at));
        player.reached = arrivals(&was, &player.reached, |at| cut.of_client(at));
        player.heard.retain_mut(|heard| move_to(cut.of_client(heard.at), &mut heard.at));
        let was: Vec<(u32, Micros)> = player.snapshots.iter().map(|s| (s.seq.0, s.at)).collect();
        player.snapshots.retain_mut(|snapshot| move_to(cut.of_server(snapshot.at), &mut snapshot.at));
        player.received = arrivals(&was, &player.received, |at| cut.of_server(at));
    }
    session.ticks.retain_mut(|tick| move_to(cut.of_server(tick.at), &mut tick.at));
}

/// The removed time spans. Span i ends with tick i; the last span is open and begins at the last tick.
struct TimeCut {
    ticks: Vec<Micros>,
    /// How far each span moves to an earlier time; `None` for removed spans.
    sooner: Vec<Option<Micros>>,
}

impl TimeCut {
    fn new(ticks: Vec<Micros>, removed: &SortedSet<usize>) -> TimeCut {
        // The span before the first tick is as long as the span after it, so that the next tick takes the first tick's
        // time.
        let width = |span: usize| match (ticks.get(span.max(1)), ticks.get(span.max(1) - 1)) {
            (Some(end), Some(begin)) => *end - *begin,
            _ => Micros::ZERO,
        };
        let mut gone = Micros::ZERO;
        let sooner = (0..=ticks.len()).map(|span| {
            if removed.contains(&span) {
                gone += width(span);
                None
            } else {
                Some(gone)
            }
        });
        TimeCut { sooner: sooner.collect(), ticks }
    }

    /// How far an action of a client moves. At the time of a tick, clients act after it.
    fn of_client(&self, at: Micros) -> Option<Micros> {
        self.sooner[self.ticks.partition_point(|tick| *tick <= at)]
    }

    /// How far an action of the server moves; the server acts in its ticks.
    fn of_server(&self, at: Micros) -> Option<Micros> {
        self.sooner[self.ticks.partition_point(|tick| *tick < at)]
    }
}

/// Moves a time; false if its span was removed.
fn move_to(sooner: Option<Micros>, at: &mut Micros) -> bool {
    if let Some(sooner) = sooner {
        *at = *at - sooner;
    }
    sooner.is_some()
}

/// The arrivals of the remaining packets, moved with their sending.
fn arrivals(
    was_sent: &[(u32, Micros)],
    was: &[ArrivalRecord],
    sooner: impl Fn(Micros) -> Option<Micros>,
) -> Vec<ArrivalRecord> {
    let fates = ArrivalTable::new(was);
    let mut arrivals = Vec::with_capacity(was.len());
    for &(number, sent) in was_sent {
        if let Some(sooner) = sooner(sent) {
            arrivals.extend(fates.of(number).map(|at| ArrivalRecord { number, at: at - sooner }));
        }
    }
    arrivals.sort_by_key(|a| (a.at, a.number));
    arrivals
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(removed: &[usize]) -> TimeCut {
        let ticks = [10, 20, 30, 40].map(Micros).to_vec();
        TimeCut::new(ticks, &removed.iter().copied().collect())
    }

    #[test]
    fn records_before_a_cut_stay_and_later_ones_move_forward() {
        let cut = cut(&[1, 2]);
        let moved: Vec<Option<i64>> =
            [5, 10, 15, 29, 30, 39].map(|at| cut.of_client(Micros(at)).map(|sooner| at - sooner.0)).to_vec();
        assert_eq!(moved, [Some(5), None, None, None, Some(10), Some(19)]);
    }

    #[test]
    fn a_tick_is_removed_with_the_span_before_it() {
        let cut = cut(&[1]);
        let moved: Vec<Option<i64>> =
            [10, 20, 30].map(|at| cut.of_server(Micros(at)).map(|sooner| at - sooner.0)).to_vec();
        assert_eq!(moved, [Some(10), None, Some(20)]);
    }

    #[test]
    fn a_session_without_its_beginning_keeps_its_start_time() {
        let cut = cut(&[0, 1]);
        assert_eq!(cut.of_server(Micros(30)).map(|sooner| 30 - sooner.0), Some(10));
        assert_eq!(cut.of_client(Micros(5)), None);
    }
}
