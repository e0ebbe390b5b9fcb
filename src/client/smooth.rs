//! What a correction looks like: the body is drawn where it was, and the difference fades
//! (Quake III's `cg_errordecay`, Source's `cl_smoothtime`).

use glam::Vec3;

use crate::settings::Settings;
use crate::units::Micros;

pub(super) struct Smoothing {
    fade: Micros,
    max_units: f32,
    error: Vec3,
    since: Micros,
}

impl Smoothing {
    pub(super) fn new(settings: &Settings) -> Smoothing {
        Smoothing {
            fade: Micros::from_ms(settings.prediction.smooth_ms),
            max_units: settings.prediction.smooth_max_units as f32,
            error: Vec3::ZERO,
            since: Micros::ZERO,
        }
    }

    /// `error` is where the body was drawn minus where it should now be drawn.
    pub(super) fn handle_correction(&mut self, now: Micros, error: Vec3, corrected: bool) {
        if !corrected {
            return;
        }
        self.error = if error.length() > self.max_units { Vec3::ZERO } else { error };
        self.since = now;
    }

    /// What is left of the error, to be added to the predicted origin.
    pub(super) fn offset(&self, now: Micros) -> Vec3 {
        let age = now - self.since;
        if self.error == Vec3::ZERO || age >= self.fade {
            return Vec3::ZERO;
        }
        self.error * (1.0 - age.0 as f32 / self.fade.0 as f32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_fades_and_a_teleport_does_not() {
        let mut smoothing = Smoothing::new(&Settings::default());
        smoothing.handle_correction(Micros::from_ms(1000), Vec3::X * 10.0, true);
        let left = |ms| smoothing.offset(Micros::from_ms(ms)).x;
        assert_eq!([left(1000), left(1050), left(1100), left(1500)], [10.0, 5.0, 0.0, 0.0]);
        smoothing.handle_correction(Micros::from_ms(2000), Vec3::X * 500.0, true);
        assert_eq!(smoothing.offset(Micros::from_ms(2000)), Vec3::ZERO);
    }
}
