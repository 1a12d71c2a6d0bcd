package storetest

import (
	"strings"

	"github.com/surehook/surehook/sender"
)

func eraseRules() []rule {
	return []rule{
		{"settings erased", "The settings of a deleted subscription, with what is sealed in them, are there while anything of it is live, and are erased by the sweep that finds nothing more.", eraseSettings},
	}
}

// eraseSettings ends subscriptions in all ways, each with an attempt in flight, and looks for
// what was sealed of them.
func eraseSettings(w *world) {
	for name, end := range map[string]func(owner, sub string){
		"deleted":                         func(_, sub string) { w.unsubscribe(sub) },
		"closed":                          func(_, sub string) { w.close(sub) },
		"paused, then closed":             func(_, sub string) { w.pause(sub); w.close(sub) },
		"closed with its owner":           func(owner, _ string) { w.deleteSubscriber(owner) },
		"paused, and gone with its owner": func(owner, sub string) { w.pause(sub); w.deleteSubscriber(owner) },
	} {
		owner := w.subscriber()
		sub := w.subscribe(owner, "only.addressed")
		set := sender.Settings{Headers: map[string]string{"X-Key": "\x01sealed"}, SealedCertificate: []byte("sealed"), MaxInFlight: 3}
		w.set(sub, set)
		w.backlog(owner, sub, 2)
		claimed := w.claim(1)
		end(owner, sub)
		w.sweep(100)
		w.storedSettings(sub, set, "%s, while an attempt is in flight", name)
		rest := w.claim(plenty)
		w.equal(len(rest), map[bool]int{true: 1}[strings.HasPrefix(name, "closed")], "deliveries claimed later, %s", name)
		for _, c := range append(claimed, rest...) {
			w.equal(*c.Target.Settings, set, "settings of a claim, %s", name)
			w.record(result(c, sender.ClassNone))
		}
		w.sweep(100)
		w.gone(sub, name)
		w.storedSettings(sub, sender.Settings{}, "%s, once nothing is live", name)
	}
}

// storedSettings ends the test unless the database has these settings of a subscription.
func (w *world) storedSettings(sub string, want sender.Settings, when string, args ...any) {
	w.Helper()
	if w.SettingsOf != nil {
		w.equal(w.SettingsOf(w.T, sub), want, "stored settings of a subscription that is "+when, args...)
	}
}
