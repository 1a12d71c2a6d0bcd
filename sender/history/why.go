package history

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/surehook/surehook/backoff"
	"github.com/surehook/surehook/sender"
)

// Reason is why a delivery is in the state that it is in.
type Reason string

// The reasons.
const (
	WhyDelivered     Reason = "delivered"
	WhyInFlight      Reason = "in_flight"      // an attempt is under way
	WhyDue           Reason = "due"            // it waits for its turn
	WhyAwaitingRetry Reason = "awaiting_retry" // it waits for the time of its next attempt
	WhyRateLimited   Reason = "rate_limited"   // its subscription's rate allows no attempt now
	WhyPaused        Reason = "paused"         // held: its subscription is
	WhyDisabled      Reason = "disabled"       // held: its subscription is
	WhyCancelled     Reason = "cancelled"
	WhyDeadLettered  Reason = "dead_lettered"
	WhyBehind        Reason = "behind"     // it waits for an earlier version of its object
	WhySuperseded    Reason = "superseded" // a newer version of its object came
	WhySentAgain     Reason = "sent_again" // it was delivered, and is sent a single time more
)

// Why explains the state of a delivery.
type Why struct {
	Reason Reason
	// Sentence says it in English: what it waits for, since when, and what can be
	// done. It is for people, and its wording changes.
	Sentence string
	// Parts are the sentence in pieces, in their order, with its times apart, so that
	// they can be shown otherwise: the texts together are the Sentence.
	Parts []Part
	// Until is when the reason is over if nothing else happens: of the next attempt,
	// or of the end of the lease. Zero: not known, or never.
	Until time.Time
	// Subscription is the status of its subscription; "" if that is deleted.
	Subscription sender.SubscriptionStatus
	// Attempts are the first attempt, the first that succeeded and the last one, each once,
	// oldest first.
	Attempts []sender.Attempt
	// Behind is the delivery that it waits for, of another version of its object; "": it
	// waits for none.
	Behind string
	// HoldsBack: it is a dead letter, and later versions of its object wait for it. See
	// History.PassOver.
	HoldsBack bool
}

// Part is a piece of a sentence.
type Part struct {
	Text string
	Time time.Time // the time that the text says, in UTC; zero: it says none
}

// MaxAhead is how many deliveries are counted at most that go before one.
const MaxAhead = 1000

// Facts are what explains the state of a delivery.
type Facts struct {
	Now      time.Time       // the database's
	Delivery sender.Delivery // with the first of its attempts, the first that succeeded and the last

	// If it has not ended:

	Tries  int       // attempts of its present schedule, the one in hand included
	Single bool      // it was delivered, and is sent a single time more
	Spared bool      // its last attempt was forgiven: see Decision.Spared
	Leased time.Time // when the attempt in flight was claimed; zero: none is
	Lease  time.Time // when its lease ends
	// Ahead is about how many deliveries of its subscription go before it, if it is
	// due; MaxAhead + 1 if they are more.
	Ahead int
	// Behind is the delivery of another version of its object that it waits for; "": it
	// waits for none. It is the delivery itself if that is the first of a line that halts:
	// see rules.Line. BehindDead: it is a dead letter.
	Behind     string
	BehindDead bool

	// If it is a dead letter:

	HoldsBack bool // later versions of its object wait for it

	// About its subscription:

	Status    sender.SubscriptionStatus // "": it is deleted
	HeldSince time.Time                 // when it was paused or disabled
	Reason    string                    // why it was disabled
	Health    sender.Health
	Settings  sender.Settings
	InFlight  int       // its attempts in flight
	RateAgain time.Time // when its rate allows an attempt; zero: now

	published string // the payload version of its event's data, if that may be why it was put off
}

// putOff tells whether a delivery that was never attempted is not due: a process that had
// claimed it could not send it.
func (f *Facts) putOff() bool {
	d := &f.Delivery
	return d.Status == sender.StatusPending && !d.InFlight && d.AttemptCount == 0 && f.Behind == "" && d.NextAttemptAt.After(f.Now)
}

// why explains facts. For a delivery that was put off it reads the event, whose payload
// version may be the reason.
func (h *History) why(ctx context.Context, f *Facts) (Why, error) {
	if f.putOff() {
		e, err := h.store.Event(ctx, f.Delivery.Event.ID)
		if err != nil && !errors.Is(err, sender.ErrNotFound) {
			return Why{}, err
		}
		if _, p, ok := sender.SplitBody(e.Body); ok && p.Data != nil {
			f.published = p.Version
		}
	}
	return explain(f), nil
}

// explain is a pure function of the facts.
func explain(f *Facts) Why {
	d := &f.Delivery
	w := Why{Subscription: f.Status, Attempts: d.Attempts}
	say := func(reason Reason, until time.Time, format string, args ...any) Why {
		w.Reason, w.Until = reason, until
		w.Parts, w.Sentence = parts(fmt.Sprintf(format, args...))
		return w
	}
	switch {
	case d.InFlight:
		return say(WhyInFlight, f.Lease, "Attempt %d has been in flight since %s%s.", d.AttemptCount+1, at(f.Leased), f.afterFlight())
	case d.Status == sender.StatusDelivered:
		return say(WhyDelivered, time.Time{}, "%s", delivered(d))
	case d.Status == sender.StatusCancelled:
		return say(WhyCancelled, time.Time{}, "%s", f.cancelled())
	case d.Status == sender.StatusSuperseded:
		return say(WhySuperseded, time.Time{}, "Superseded: a newer version of its object came before it was delivered, and its subscription wants the latest alone. It can be redelivered.")
	case d.Status == sender.StatusDeadLettered:
		w.HoldsBack = f.HoldsBack
		return say(WhyDeadLettered, time.Time{}, "%s%s", deadLettered(d), f.holdsBack())
	case d.Status == sender.StatusHeld && f.Status == sender.SubscriptionPaused:
		return say(WhyPaused, time.Time{}, "Held: its subscription was paused at %s. Resume the subscription to send it.", at(f.HeldSince))
	case d.Status == sender.StatusHeld:
		return say(WhyDisabled, time.Time{}, "Held: its subscription was disabled at %s%s. Resume the subscription to send it.", at(f.HeldSince), because(f.Reason))
	}
	again := ""
	if f.Single {
		again = "It was delivered before, and is sent a single time more, whose failure leaves it delivered. "
	}
	due := d.NextAttemptAt
	if f.Behind != "" && f.Behind == d.ID {
		return say(WhyBehind, time.Time{}, "%sA newer version of its object has come, and its subscription wants the latest alone: it is about to be superseded, with the others before that version.", again)
	}
	w.Behind = f.Behind
	switch {
	case f.BehindDead:
		return say(WhyBehind, time.Time{}, "%sHeld back by a dead letter of an earlier version of its object, %s. Redeliver that, or pass over it.", again, f.Behind)
	case f.Behind != "":
		return say(WhyBehind, time.Time{}, "%sWaiting until another version of its object has ended: delivery %s.", again, f.Behind)
	case f.Settings.Unreadable() != nil:
		return say(WhyAwaitingRetry, due, "%sNot attempted, because the settings that are stored of its subscription cannot be read by this release. It is looked at again at %s. Give the subscription new settings, or run the release that wrote them.", again, at(due))
	case f.putOff():
		return say(WhyAwaitingRetry, due, "Not attempted yet: a process that had it could not send it, and has put it off until %s. %sThe log of that process says why.", at(due), f.notConverted())
	case due.After(f.Now) && f.Single && f.Spared:
		return say(WhySentAgain, due, "%s%s", again, f.awaiting())
	case due.After(f.Now) && f.Single:
		return say(WhySentAgain, due, "%sThe attempt is due at %s.", again, at(due))
	case due.After(f.Now):
		return say(WhyAwaitingRetry, due, "%s", f.awaiting())
	case f.RateAgain.After(f.Now):
		attempts := "attempts"
		if f.Settings.Rate == 1 {
			attempts = "attempt"
		}
		return say(WhyRateLimited, f.RateAgain, "%sDue since %s, and kept back by its subscription's rate of %s %s a second, which allows the next at %s%s.",
			again, at(due), strconv.FormatFloat(f.Settings.Rate, 'g', -1, 64), attempts, at(f.RateAgain), f.behind())
	}
	reason := WhyDue
	if f.Single {
		reason = WhySentAgain
	}
	return say(reason, time.Time{}, "%sDue since %s, and waiting for its turn%s.%s", again, at(due), f.behind(), f.places())
}

func at(t time.Time) string {
	if t.IsZero() {
		return "an unknown time"
	}
	return timeMark + t.UTC().Format(time.RFC3339) + timeMark
}

// timeMark stands before and after a time while a sentence is made. No text that is stored
// has it.
const timeMark = "\x00"

// parts splits a sentence that has its times marked.
func parts(marked string) (all []Part, sentence string) {
	for _, text := range strings.Split(marked, timeMark) {
		if text == "" {
			continue
		}
		t, err := time.Parse(time.RFC3339, text)
		if err != nil {
			t = time.Time{}
		}
		all, sentence = append(all, Part{Text: text, Time: t}), sentence+text
	}
	return all, sentence
}

func because(reason string) string {
	if reason == "" {
		return ""
	}
	return " (" + reason + ")"
}

// delivered tells of the attempt that first succeeded.
func delivered(d *sender.Delivery) string {
	for _, a := range d.Attempts {
		if a.Class == sender.ClassNone {
			return fmt.Sprintf("Delivered at %s by attempt %d, which was answered with %d.", at(a.StartedAt.Add(a.Duration)), a.Number, a.StatusCode)
		}
	}
	return "Delivered."
}

func (f *Facts) cancelled() string {
	switch deleted := f.Status == ""; {
	case deleted && f.Delivery.Redacted:
		return "Cancelled: its event was redacted, or its subscription was deleted, before it was delivered."
	case deleted:
		return "Cancelled: its subscription was deleted before it was delivered."
	case f.Delivery.Redacted:
		return "Cancelled: its event was redacted, or its subscription was resumed without it before."
	}
	return "Cancelled: its subscription was resumed without it."
}

func deadLettered(d *sender.Delivery) string {
	advice := "Redeliver it to start its schedule anew."
	if d.Redacted {
		advice = "Its event was redacted, so it cannot be sent again."
	}
	if heldTooLong(d) {
		if !d.Redacted {
			advice = "It can be redelivered by force."
		}
		made := "without an attempt"
		if n := d.AttemptCount; n > 0 {
			made = "after " + counted(n, "attempt")
		}
		return fmt.Sprintf("Dead-lettered %s: an earlier version of its object, a dead letter, held it back for so long that its receiver may have forgotten its event, which was published at %s. %s",
			made, at(d.CreatedAt), advice)
	}
	first, last := d.Attempts[0], d.Attempts[len(d.Attempts)-1]
	return fmt.Sprintf("Dead-lettered at %s after %s over %s; the last one failed: %s. %s",
		at(last.StartedAt.Add(last.Duration)), counted(d.AttemptCount, "attempt"),
		last.StartedAt.Add(last.Duration).Sub(first.StartedAt).Round(time.Second), failed(&last), advice)
}

// heldTooLong tells of a dead letter that no attempt has made one: there was none, or another
// was to follow. A sweep has made it one: see rules.Expire.
func heldTooLong(d *sender.Delivery) bool {
	n := len(d.Attempts)
	return n == 0 || !d.Attempts[n-1].NextAttemptAt.IsZero()
}

func (f *Facts) holdsBack() string {
	if !f.HoldsBack {
		return ""
	}
	return " Later versions of its object wait for it: redeliver it, or pass over it to let them go on."
}

// awaiting tells of a delivery whose next attempt is not due yet.
func (f *Facts) awaiting() string {
	d := &f.Delivery
	next := fmt.Sprintf("Attempt %d, the %s of its schedule, is due at %s.", d.AttemptCount+1, ordinal(f.Tries+1), at(d.NextAttemptAt))
	if len(d.Attempts) == 0 {
		return "No attempt has ended yet. " + next
	}
	last := &d.Attempts[len(d.Attempts)-1]
	if f.Spared {
		next = fmt.Sprintf("It does not count, because most likely the server has not processed the request. Attempt %d is made in its place, and is due at %s.",
			d.AttemptCount+1, at(d.NextAttemptAt))
	}
	if !f.Spared && !last.NextAttemptAt.IsZero() && d.NextAttemptAt.After(last.NextAttemptAt) {
		next = fmt.Sprintf("Since then a process that had it could not send it, and has put it off until %s. The log of that process says why.", at(d.NextAttemptAt))
	}
	return fmt.Sprintf("Attempt %d failed at %s: %s. %s%s", last.Number, at(last.StartedAt.Add(last.Duration)), failed(last), asked(last), next)
}

// asked tells of a pause that an attempt's answer asked for, if its headers were kept.
func asked(a *sender.Attempt) string {
	for _, h := range a.Headers.Answer() {
		if !strings.EqualFold(h.Name, "Retry-After") {
			continue
		}
		if pause, ok := backoff.ParseRetryAfter(h.Value, a.StartedAt.Add(a.Duration)); ok && pause > 0 {
			return fmt.Sprintf("Its answer asked for a pause of %s (Retry-After), to which the policy lengthens a shorter delay, within its bounds. ", pause.Round(time.Second))
		}
	}
	return ""
}

// notConverted tells of a payload version that may be why a delivery was put off.
func (f *Facts) notConverted() string {
	pinned := f.Settings.PayloadVersion
	if f.published <= pinned {
		return ""
	}
	if pinned == "" {
		pinned = "the oldest one"
	}
	return fmt.Sprintf("Its data was published in the payload version %s, and its subscription gets %s: perhaps the one could not be made into the other, because a converter fails, or because the process has no catalogue, or an older one. ", f.published, pinned)
}

func (f *Facts) afterFlight() string {
	switch {
	case f.Status == "":
		return "; its subscription was deleted, so it is cancelled unless this attempt succeeds"
	case f.Delivery.Status == sender.StatusCancelled && f.Delivery.Redacted:
		return "; its event was redacted, so it is cancelled unless this attempt succeeds"
	case f.Delivery.Status == sender.StatusCancelled:
		return "; its subscription was resumed without it, so it is cancelled unless this attempt succeeds"
	case f.Delivery.Status == sender.StatusHeld:
		return "; if it fails the delivery is held, because its subscription is " + string(f.Status)
	case f.Single:
		return "; it was delivered before, and stays so whatever comes of it"
	}
	return ""
}

func (f *Facts) behind() string {
	switch {
	case f.Ahead <= 0:
		return ", as the first of its subscription"
	case f.Ahead > MaxAhead:
		return ", behind more than 1,000 others of its subscription"
	}
	return ", behind " + counted(f.Ahead, "other") + " of its subscription"
}

// places tells why a subscription has few.
func (f *Facts) places() string {
	switch {
	case f.Settings.MaxInFlight > 0 && f.InFlight >= f.Settings.MaxInFlight:
		return fmt.Sprintf(" The subscription has %s in flight, as many as it may have.", counted(f.InFlight, "attempt"))
	case f.Health.Streak > 0:
		return fmt.Sprintf(" The endpoint is failing (%s in a row since %s), so it has few places.", counted(f.Health.Streak, "failure"), at(f.Health.FailingSince))
	case f.Health.Lane == sender.LaneProbation:
		return " The endpoint answers slowly, so it has few places."
	case f.Health.Lane == sender.LaneNew:
		return " The endpoint is new: it has few places until it has answered."
	}
	return ""
}

func failed(a *sender.Attempt) string {
	if a.Error == "" {
		return string(a.Class)
	}
	return string(a.Class) + ", " + a.Error
}

func counted(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}

func ordinal(n int) string {
	suffix := "th"
	if n%100 < 11 || n%100 > 13 {
		switch n % 10 {
		case 1:
			suffix = "st"
		case 2:
			suffix = "nd"
		case 3:
			suffix = "rd"
		}
	}
	return strconv.Itoa(n) + suffix
}
