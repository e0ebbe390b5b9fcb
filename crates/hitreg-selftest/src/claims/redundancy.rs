//! NeREIDS's plan of adaptive redundancy in whole sessions. Player 0 sends.

use super::experiment::Experiment;
use super::watch::SessionWatch;
use super::{Claim, ClaimError, NamedFigures, share};

pub(super) const CLAIMS: &[Claim] = &[
    claim!(Nereids, "redundancy-adapts", redundancy_adapts),
    claim!(Nereids, "redundancy-and-bandwidth", of ["four", "two", "one"] redundancy_and_bandwidth),
];

fn redundancy_adapts(experiment: &Experiment) -> Result<NamedFigures, ClaimError> {
    let at = |line: &str, level: u8| Ok::<_, ClaimError>(share_at(&experiment.play_variant(line)?, level));
    // The rate of each redundancy level. The tight line has room for 2:1 but not for 3:1.
    let takes = |fixed: &str| Ok::<_, ClaimError>(bytes_per_s(&experiment.play_variant(fixed)?).unwrap_or_default());
    let (three, two, one) = (takes("three")?, takes("two")?, takes("one")?);
    let (tight, tighter) = ((three + two) / 2.0, (two + one) / 2.0);
    let over =
        |line: &str, rate: f64, level: u8| Ok::<_, ClaimError>(share_at(&experiment.play_over(line, rate)?, level));
    Ok(vec![
        ("4:1 on a line with 5 % loss", at("lossy", 4)?),
        ("4:1 on a line with 70 ms of jitter", at("jittery", 4)?),
        ("3:1 on a clean line", at("clean", 3)?),
        ("2:1 on a tight line", over("clean", tight, 2)?),
        ("1:1 on a tighter line", over("clean", tighter, 1)?),
        ("1:1 on the tighter line with 150 ms of jitter", over("jittery-more", tighter, 1)?),
    ])
}

fn redundancy_and_bandwidth([four, two, one]: [&SessionWatch; 3]) -> NamedFigures {
    vec![
        ("4:1", bytes_per_s(four)),
        ("2:1", bytes_per_s(two)),
        ("1:1", bytes_per_s(one)),
        ("4:1 over 2:1", bytes_per_s(four).zip(bytes_per_s(two)).map(|(four, two)| four / two)),
    ]
}

/// Returns the share of packets with this number of usercmds, in percent.
fn share_at(seen: &SessionWatch, level: u8) -> Option<f64> {
    share(seen.packets_of(0).filter(|packet| packet.count == level).count(), seen.packets_of(0).count())
}

fn bytes_per_s(seen: &SessionWatch) -> Option<f64> {
    let bytes: usize = seen.packets_of(0).map(|packet| usize::from(packet.bytes)).sum();
    (bytes > 0).then(|| seen.per_s(bytes))
}
