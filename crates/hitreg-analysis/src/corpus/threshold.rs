//! Thresholds: figures of a corpus that may not exceed a value.

use std::str::FromStr;

use serde::Serialize;

use super::side::three_digits;
use super::summary::CorpusSummary;
use crate::diff::TraceVerdict;
use crate::swept::SweepFigures;
use hitreg_log::units::named;

named! {
    /// A figure that a threshold limits.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum ThresholdFigure {
        /// Corrections on side B, as a share of its usercmds.
        Corrections = "corrections",
        /// The 95th percentile of the view error on side B, in units.
        ViewErrorP95 = "view-error-p95",
        /// Shots with another outcome: a count, or a share of the shots that a server judged on side A or B.
        HitsChanged = "hits-changed",
    }
}

impl ThresholdFigure {
    /// The figures that need no second side.
    pub const OF_ONE_SIDE: [ThresholdFigure; 2] = [ThresholdFigure::Corrections, ThresholdFigure::ViewErrorP95];
}

/// A figure with its greatest allowed value. Its text is `corrections=3%`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Threshold {
    /// The figure.
    pub figure: ThresholdFigure,
    /// The greatest allowed value. A share in percent is from 0 to 1.
    pub max: f64,
    /// Whether the value is a share in percent.
    pub is_share: bool,
}

/// A threshold with the measured value.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ThresholdResult {
    /// The threshold.
    #[serde(flatten)]
    pub threshold: Threshold,
    /// The measured value; `None` if the results do not have the figure.
    pub value: Option<f64>,
    /// `same` within the threshold, `differs` above it, `untestable` without a value.
    pub verdict: TraceVerdict,
}

impl ThresholdResult {
    /// The figure with its value and limit: `corrections: 1.200 %, at most 3.000 %`.
    pub fn text(&self) -> String {
        let threshold = self.threshold;
        let with_digits = |digits| [self.value, Some(threshold.max)].map(|value| threshold.text_of(value, digits));
        // A value above the limit has as many digits as show it.
        let is_clear = |[value, max]: &[String; 2]| self.verdict != TraceVerdict::Differs || value != max;
        let [value, max] = (2..17).map(with_digits).find(is_clear).unwrap_or_else(|| with_digits(17));
        format!("{}: {value}, at most {max}", threshold.figure.name())
    }
}

/// Why a text is no threshold of a command; says what to write.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ThresholdError(String);

impl FromStr for Threshold {
    type Err = ThresholdError;

    fn from_str(text: &str) -> Result<Threshold, ThresholdError> {
        Threshold::of(text, &ThresholdFigure::ALL)
    }
}

impl Threshold {
    /// Parses the threshold of one of these figures.
    ///
    /// # Errors
    /// Fails if the text is no threshold, or limits another figure.
    pub fn of(text: &str, figures: &[ThresholdFigure]) -> Result<Threshold, ThresholdError> {
        let wrong = || {
            let names: Vec<&str> = figures.iter().map(|figure| figure.name()).collect();
            ThresholdError(format!("write FIGURE=NUMBER, such as corrections=3%; the figures are {}", names.join(", ")))
        };
        let (name, value) = text.split_once('=').ok_or_else(wrong)?;
        let figure = name.trim().parse().map_err(|_| wrong())?;
        if !figures.contains(&figure) {
            let name = figure.name();
            let what = format!("this command does not measure {name}, `hitreg diff` does; {}", wrong());
            return Err(ThresholdError(what));
        }
        let (number, is_share) = value.trim().strip_suffix('%').map_or((value, false), |number| (number, true));
        let max: f64 = number.trim().parse().map_err(|_| wrong())?;
        if !max.is_finite() || max < 0.0 {
            return Err(wrong());
        }
        let misfit = match (figure, is_share) {
            (ThresholdFigure::Corrections, false) => {
                "corrections are a share of usercmds: write a percentage, such as corrections=3%"
            }
            (ThresholdFigure::ViewErrorP95, true) => {
                "view-error-p95 is in units: write a number, such as view-error-p95=5"
            }
            _ => return Ok(Threshold { figure, max: if is_share { max / 100.0 } else { max }, is_share }),
        };
        Err(ThresholdError(misfit.to_owned()))
    }

    /// The value of the figure.
    fn value(self, of: &MeasuredFigures) -> Option<f64> {
        let share = |part: u64, of: u64| (of > 0).then(|| part as f64 / of as f64);
        match self.figure {
            ThresholdFigure::Corrections => {
                of.corrections.and_then(|(corrections, usercmds)| share(corrections, usercmds))
            }
            ThresholdFigure::ViewErrorP95 => of.view_error_p95,
            ThresholdFigure::HitsChanged if self.is_share => share(of.hits_changed?, of.shots_judged),
            // No changed shot among no shots proves nothing.
            ThresholdFigure::HitsChanged => {
                of.hits_changed.filter(|_| of.shots_judged > 0).map(|changed| changed as f64)
            }
        }
    }

    /// Compares the figures with the threshold: those of a corpus, or of each row of a sweep. The greatest value counts.
    /// The view errors of a corpus have three digits, so the threshold is rounded to three digits as well.
    pub fn check(self, measured: &[MeasuredFigures]) -> ThresholdResult {
        let is_rounded = self.figure == ThresholdFigure::ViewErrorP95 && measured.iter().any(|of| of.is_rounded);
        let threshold =
            if is_rounded { Threshold { max: f64::from(three_digits(self.max as f32)), ..self } } else { self };
        let values: Option<Vec<f64>> = measured.iter().map(|of| self.value(of)).collect();
        let value = values.and_then(|values| values.into_iter().reduce(f64::max));
        let verdict = match value {
            None => TraceVerdict::Untestable,
            Some(value) if value > threshold.max => TraceVerdict::Differs,
            Some(_) => TraceVerdict::Same,
        };
        ThresholdResult { threshold, value, verdict }
    }

    /// A value of this figure as text: `1.200 %`, `4.80 units`, `12`.
    fn text_of(self, value: Option<f64>, digits: usize) -> String {
        match (value, self.figure, self.is_share) {
            (None, ..) => "not measured".to_owned(),
            (Some(value), _, true) => format!("{:.*} %", digits + 1, 100.0 * value),
            (Some(value), ThresholdFigure::ViewErrorP95, false) => format!("{value:.digits$} units"),
            (Some(value), ..) => format!("{value}"),
        }
    }
}

/// The figures that thresholds limit. A figure that was not measured is `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct MeasuredFigures {
    /// The corrections, and the usercmds of the replays that know them.
    corrections: Option<(u64, u64)>,
    view_error_p95: Option<f64>,
    /// Whether `view_error_p95` is rounded to three digits, as view errors in results are.
    is_rounded: bool,
    hits_changed: Option<u64>,
    shots_judged: u64,
}

impl From<&CorpusSummary> for MeasuredFigures {
    fn from(summary: &CorpusSummary) -> MeasuredFigures {
        MeasuredFigures {
            corrections: summary.b.correction_share(),
            view_error_p95: summary.view_errors.b.map(|spread| f64::from(spread.p95)),
            is_rounded: true,
            hits_changed: summary.hits_changed,
            shots_judged: summary.shots_judged.unwrap_or_default(),
        }
    }
}

impl From<&SweepFigures> for MeasuredFigures {
    fn from(figures: &SweepFigures) -> MeasuredFigures {
        MeasuredFigures {
            corrections: figures.corrections.map(|corrections| (corrections, figures.usercmds_of_corrections)),
            is_rounded: false,
            view_error_p95: figures.view_error_units.map(|spread| f64::from(spread.p95)),
            hits_changed: None,
            shots_judged: 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::TraceVerdict::{Differs, Same, Untestable};
    use super::*;
    use crate::corpus::{CorpusSummaryBuilder, LogRow, ResultRow, SideCounts, ViewErrors};
    use hitreg_log::stats::Spread;

    /// A build whose traces have no table of corrections shows nothing about their number.
    #[test]
    fn corrections_without_their_table_are_not_measured() {
        let threshold: Threshold = "corrections=0%".parse().expect("a threshold");
        let checked = |of_logs: &[(u64, Option<u64>)]| {
            let mut builder = CorpusSummaryBuilder::default();
            for (usercmds, corrections_b) in of_logs {
                let row = LogRow {
                    verdict: "same".to_owned(),
                    usercmds: *usercmds,
                    corrections_b: *corrections_b,
                    ..LogRow::default()
                };
                builder.add(&[ResultRow::Log(Box::new(row))]);
            }
            let result = threshold.check(&[MeasuredFigures::from(&builder.summary())]);
            (result.value, result.verdict)
        };
        assert_eq!(checked(&[(10, Some(0)), (0, None)]), (Some(0.0), Same), "the second log was not replayed");
        assert_eq!(checked(&[(10, Some(5))]), (Some(0.5), Differs));
        assert_eq!(checked(&[(10, None)]), (None, Untestable));
        assert_eq!(
            checked(&[(10, Some(5)), (90, None)]),
            (Some(0.5), Differs),
            "the second log leaves the share alone"
        );
    }

    #[test]
    fn thresholds_are_figures_with_numbers() {
        let parsed = |text: &str| text.parse::<Threshold>();
        let corrections = Threshold { figure: ThresholdFigure::Corrections, max: 0.03, is_share: true };
        assert_eq!(parsed("corrections=3%"), Ok(corrections));
        let of_one_side = |text: &str| Threshold::of(text, &ThresholdFigure::OF_ONE_SIDE);
        assert_eq!(of_one_side("corrections=3%"), Ok(corrections));
        assert!(of_one_side("hits-changed=0").is_err_and(|error| error.0.contains("does not measure hits-changed")));
        for wrong in
            ["corrections=3", "view-error-p95=5%", "hits-changed", "hits-changed=-1", "hits=0", "hits-changed=NaN"]
        {
            assert!(parsed(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn an_exceeded_threshold_shows_the_digits_that_exceed_it() {
        let text = |max: &str, value| {
            let of = MeasuredFigures { view_error_p95: Some(value), ..MeasuredFigures::default() };
            max.parse::<Threshold>().expect(max).check(&[of]).text()
        };
        assert_eq!(text("view-error-p95=71.8", 71.800804), "view-error-p95: 71.801 units, at most 71.800 units");
        assert_eq!(text("view-error-p95=5", 71.8), "view-error-p95: 71.80 units, at most 5.00 units");
        assert_eq!(text("view-error-p95=71.8", 71.799999), "view-error-p95: 71.80 units, at most 71.80 units");
    }

    #[test]
    fn each_figure_is_within_above_or_unknown() {
        let measured = CorpusSummary {
            b: SideCounts { usercmds_of_corrections: 1_000, corrections: Some(30), ..SideCounts::default() },
            hits_changed: Some(2),
            shots_judged: Some(100),
            view_errors: ViewErrors { a: None, b: Some(Spread { p50: 1.0, p95: 5.0, max: 9.0 }) },
            ..CorpusSummary::default()
        };
        let verdict =
            |text: &str, of: &CorpusSummary| text.parse::<Threshold>().expect(text).check(&[of.into()]).verdict;
        for (within, above) in [
            ("corrections=3%", "corrections=2.9%"),
            ("view-error-p95=5", "view-error-p95=4.9"),
            ("view-error-p95=4.996", "view-error-p95=4.994"),
            ("hits-changed=2", "hits-changed=1"),
            ("hits-changed=2%", "hits-changed=1.9%"),
        ] {
            assert_eq!([verdict(within, &measured), verdict(above, &measured)], [Same, Differs]);
            assert_eq!(verdict(within, &CorpusSummary::default()), Untestable);
        }
        let lost = CorpusSummary { b: SideCounts::default(), hits_changed: Some(40), ..measured.clone() };
        assert_eq!(verdict("hits-changed=0", &lost), Differs, "B has no shots, and A has");
        let of_rows = |text: &str, of: &[&CorpusSummary]| {
            let rows: Vec<MeasuredFigures> = of.iter().map(|of| (*of).into()).collect();
            text.parse::<Threshold>().expect(text).check(&rows)
        };
        let more = CorpusSummary { hits_changed: Some(4), ..measured.clone() };
        assert_eq!(of_rows("hits-changed=3", &[&measured, &more, &measured]).value, Some(4.0), "the greatest counts");
        assert_eq!(of_rows("hits-changed=3", &[&measured, &CorpusSummary::default()]).verdict, Untestable);
    }
}
