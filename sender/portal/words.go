package portal

import (
	"fmt"
	"html/template"
	"net/http"
	"strings"
	"time"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/catalogue"
	"github.com/surehook/surehook/sender/history"
	"github.com/surehook/surehook/sender/internal/look"
)

// words are the functions of the pages, beside those of package look, some of which they
// replace: a customer reads other words than an operator.
var words = template.FuncMap{
	"delivery":   stateOf,
	"answerof":   answerOf,
	"statuscode": func(code int) string { return http.StatusText(code) },
	"typed":      typed,
	"row":        func(l layout, v any) row { return row{l, v} },
	"tab":        func(l layout, name, to, word string) tab { return tab{l.Base + to, word, l.Tab == name} },
	"kind":       kindWord,
	"tested":     func(d sender.Delivery) bool { return sender.TestedSecret(&d.Event) != "" },
	"rows":       func(text string) int { return min(12, max(3, strings.Count(text, "\n")+2)) },
	"takersword": func(n int) string {
		if n == 1 {
			return "One of your endpoints gets it"
		}
		return look.Count(n) + " of your endpoints get it"
	},
}

// kindWord says what a receiver must do with events of a kind.
func kindWord(k catalogue.Kind) string {
	switch k {
	case catalogue.State:
		return "Its data is the whole state of its object: take it only if its version is above the one that you have."
	case catalogue.Fact:
		return "Each of these events counts: handle it once, by its id."
	}
	return "It has no data: fetch the object when it comes."
}

// row hands a part of a page both the layout and what it shows.
type row struct {
	L layout
	V any
}

// tab is a link of the navigation.
type tab struct {
	Href, Word string
	Here       bool
}

// stateOf is the state of a delivery in a customer's words.
func stateOf(d sender.Delivery) look.State {
	s := look.Delivery(d)
	s.Word = statusWord(d.Status)
	if d.InFlight {
		s.Word = "On its way"
	}
	return s
}

func statusWord(s sender.Status) string {
	switch s {
	case sender.StatusPending:
		return "Waiting"
	case sender.StatusAwaitingRetry:
		return "Trying again"
	case sender.StatusDelivered:
		return "Delivered"
	case sender.StatusDeadLettered:
		return "Not delivered"
	case sender.StatusHeld:
		return "Held"
	case sender.StatusSuperseded:
		return "Replaced"
	}
	return "Cancelled"
}

// answerOf is what the last attempt came to, as far as a list knows it.
func answerOf(d sender.Delivery) look.Label {
	if d.AttemptCount == 0 {
		return look.Label{}
	}
	return look.Answer(d.LastStatusCode, d.LastErrorClass)
}

// reason is why a delivery is in the state that it is in, for its owner.
type reason struct {
	Tone   string // of the box: ok, warn, bad, live or ""
	Icon   string
	Said   string
	Advice string
	Until  time.Time
}

func reasonOf(d *sender.Delivery, w history.Why) reason {
	state := stateOf(*d)
	r := reason{Tone: state.Tone, Icon: state.Icon, Until: w.Until}
	if r.Tone == "idle" {
		r.Tone = ""
	}
	last := ""
	if n := len(w.Attempts); n > 0 {
		last = failure(&w.Attempts[n-1])
	}
	switch w.Reason {
	case history.WhyDelivered:
		r.Said = "Your endpoint has it" + by(w.Attempts) + "."
	case history.WhyInFlight:
		r.Said, r.Until = fmt.Sprintf("Attempt %d is under way.", d.AttemptCount+1), time.Time{}
	case history.WhyDue:
		r.Said = "It is due, and waits for its turn."
	case history.WhyAwaitingRetry:
		switch {
		case last != "":
			r.Said = "The last attempt failed: " + last + ". It is tried again."
		case d.AttemptCount == 0:
			r.Said = "It could not be sent yet, for a reason on our side."
		default:
			r.Said = "It is tried again."
		}
	case history.WhyRateLimited:
		r.Said = "It is due, and your endpoint gets no more just now: its rate is limited."
	case history.WhyPaused:
		r.Said, r.Advice = "It is held: the endpoint is paused.", "Resume the endpoint, and it is sent."
	case history.WhyDisabled:
		r.Said, r.Advice = "It is held: the endpoint was disabled.", "Resume the endpoint once it answers with 2xx again."
	case history.WhyCancelled:
		r.Said = "It was cancelled, and is not sent any more."
	case history.WhySuperseded:
		r.Said = "A newer version of its object came before this one was delivered, and replaced it."
		r.Advice = "The endpoint wants only the latest version of each object. Nothing has failed. This version can still be sent again."
	case history.WhyBehind:
		r.Said, r.Advice = "It waits for another version of its object, which comes first.", "The endpoint gets one version after another."
	case history.WhyDeadLettered:
		r.Said, r.Advice = gaveUp(d, w.Attempts, last), "Once your endpoint answers with 2xx again, send this one again: its schedule starts anew."
		if w.HoldsBack {
			r.Advice += " Later versions of its object wait for it, unless you pass over it."
		}
	case history.WhySentAgain:
		r.Said = "It was delivered, and is sent a single time more."
	}
	if n := len(w.Attempts); r.Advice == "" && w.Reason == history.WhyAwaitingRetry && n > 0 && redirects(&w.Attempts[n-1]) {
		r.Advice = "Change the endpoint's URL to the one that the answer leads to, its Location, if that is yours."
	}
	if r.Advice == "" && sender.TestedSecret(&d.Event) != "" {
		r.Advice = testAdvice(d.Status == sender.StatusDelivered)
	}
	if d.Redacted {
		r.Advice = "The event's content was removed, so it cannot be sent again."
	}
	return r
}

// testAdvice is what a test of one secret tells.
func testAdvice(delivered bool) string {
	if delivered {
		return "It was signed with one secret alone, so your receiver knows that one."
	}
	return "It is signed with one secret alone. If your endpoint answers with 401, it does not know that one yet."
}

// by tells of the attempt that first succeeded.
func by(attempts []sender.Attempt) string {
	for _, a := range attempts {
		if a.Class == "" {
			return fmt.Sprintf(" since %s: attempt %d was answered with %d", exactly(a.StartedAt.Add(a.Duration)), a.Number, a.StatusCode)
		}
	}
	return ""
}

func gaveUp(d *sender.Delivery, attempts []sender.Attempt, last string) string {
	if len(attempts) == 0 {
		return "We gave up on it before an attempt was made."
	}
	first, end := &attempts[0], &attempts[len(attempts)-1]
	over := ""
	if d.AttemptCount > 1 {
		over = " over " + look.Age(end.StartedAt.Sub(first.StartedAt))
	}
	return fmt.Sprintf("We gave up on %s after %s%s. The last one failed: %s.", exactly(end.StartedAt.Add(end.Duration)), look.Plural(d.AttemptCount, "attempt"), over, last)
}

// redirects tells whether an attempt was answered with another URL (RFC 9110, section 15.4).
func redirects(a *sender.Attempt) bool {
	return a.Class == sender.ClassRedirect && a.StatusCode != http.StatusNotModified
}

// failure is what went wrong with an attempt.
func failure(a *sender.Attempt) string {
	switch {
	case a.Class == "":
		return ""
	case a.StatusCode != 0 && (a.Class == sender.ClassStatus || a.Class == sender.ClassRedirect):
		said := fmt.Sprintf("your endpoint answered with %d", a.StatusCode)
		if redirects(a) {
			said += ", and no redirect is followed"
		}
		return said
	case a.Class == sender.ClassInterrupted:
		return "it was interrupted on our side"
	case a.Error != "":
		return a.Error
	}
	return look.ClassWords(a.Class)
}
