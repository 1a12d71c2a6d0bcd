package simulation

import "github.com/surehook/surehook/sender"

// I7: attempt numbers rise by one, and the stored attempts are those of the accepted
// results.

func (w *world) checkNumbers(d *delivery, got *sender.Delivery) {
	if len(got.Attempts) != len(d.taken) {
		w.violated("I7", "%s has %d attempts, and %d results were taken", d.name, len(got.Attempts), len(d.taken))
		return
	}
	for i := range got.Attempts {
		a, want := &got.Attempts[i], &d.taken[i]
		if a.Number != i+1 || want.Number != i+1 {
			w.violated("I7", "attempt %d of %s has the number %d, its result %d", i+1, d.name, a.Number, want.Number)
		}
		if a.Class != want.Class || a.StatusCode != want.StatusCode {
			w.violated("I5", "attempt %d of %s is %q %d, and the result that was taken %q %d", a.Number, d.name, a.Class, a.StatusCode, want.Class, want.StatusCode)
		}
	}
}
