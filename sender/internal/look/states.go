package look

import (
	"html/template"
	"strconv"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/replay"
)

// State is a shape, a colour and a word: a page never says something by colour alone.
type State struct {
	Icon string // the name of a symbol
	Tone string // a class: ok, warn, bad, idle or live
	Word string
}

// Delivery is the state of a delivery.
func Delivery(d sender.Delivery) State {
	if d.InFlight {
		return State{"flight", "live", "In flight"}
	}
	return Status(d.Status)
}

// Status is the state that a delivery's status says.
func Status(s sender.Status) State {
	switch s {
	case sender.StatusPending:
		return State{"wait", "idle", "Pending"}
	case sender.StatusAwaitingRetry:
		return State{"retry", "warn", "Awaiting retry"}
	case sender.StatusDelivered:
		return State{"ok", "ok", "Delivered"}
	case sender.StatusDeadLettered:
		return State{"dead", "bad", "Dead-lettered"}
	case sender.StatusHeld:
		return State{"pause", "idle", "Held"}
	case sender.StatusSuperseded:
		return State{"cancel", "idle", "Superseded"}
	}
	return State{"cancel", "idle", "Cancelled"}
}

// Subscription is the state of a subscription: its status, and how its endpoint does
// while it is active.
func Subscription(s sender.Subscription) State {
	switch s.Status {
	case sender.SubscriptionDisabled:
		return State{"off", "bad", "Disabled"}
	case sender.SubscriptionPaused:
		return State{"pause", "idle", "Paused"}
	case sender.SubscriptionClosing:
		return State{"wait", "idle", "Closing"}
	}
	switch h := s.Health; {
	case !h.FailingSince.IsZero():
		return State{"warn", "bad", "Failing"}
	case h.Lane == sender.LaneProbation && failedLast(h.Recent): // it was resumed since
		return State{"new", "warn", "On trial"}
	case h.Lane == sender.LaneProbation:
		return State{"slow", "warn", "Slow"}
	case h.Lane == sender.LaneNew:
		return State{"new", "live", "New"}
	}
	return State{"healthy", "ok", "Healthy"}
}

func failedLast(r sender.Recent) bool {
	o := r.Outcomes()
	return len(o) > 0 && o[len(o)-1] != sender.OutcomeSucceeded
}

// Replay is the state of a replay.
func Replay(s replay.Status) State {
	switch s {
	case replay.Running:
		return State{"flight", "live", "Running"}
	case replay.Paused:
		return State{"pause", "idle", "Paused"}
	case replay.Finished:
		return State{"ok", "ok", "Finished"}
	}
	return State{"cancel", "idle", "Cancelled"}
}

// Label is a short word about an answer: 503, timeout. Its text is a stranger's, or ours.
type Label struct {
	Text string
	Tone string // ok, warn, bad or ""
}

// Answer is what an endpoint answered in one word: the status, or the class of what
// went wrong before there was one. Neither is known: the zero Label.
func Answer(status int, class sender.Class) Label {
	switch {
	case class == "" && status == 0:
		return Label{}
	case class == "":
		return Label{strconv.Itoa(status), "ok"}
	case status != 0 && (class == sender.ClassStatus || class == sender.ClassRedirect):
		return Label{strconv.Itoa(status), "bad"}
	case class == sender.ClassTimeout, class == sender.ClassInterrupted:
		return Label{string(class), "warn"}
	}
	return Label{string(class), "bad"}
}

// ClassWords says what a class of failures means.
func ClassWords(c sender.Class) string {
	return map[sender.Class]string{
		sender.ClassDNS:         "the host's name was not resolved",
		sender.ClassConnect:     "no connection",
		sender.ClassTLS:         "the handshake or the certificate failed",
		sender.ClassTimeout:     "no whole answer in time",
		sender.ClassReset:       "the connection broke",
		sender.ClassStatus:      "answered 4xx or 5xx",
		sender.ClassRedirect:    "answered 3xx, never followed",
		sender.ClassBlocked:     "the address may not be called",
		sender.ClassInterrupted: "our own process was lost",
		sender.ClassProtocol:    "the answer is not HTTP",
	}[c]
}

// icon is the symbol of that name, in the colour of a class.
func icon(name string, tone ...string) template.HTML {
	class := "i"
	for _, t := range tone {
		class += " " + t
	}
	return template.HTML(`<svg class="` + Escape(class) + `" aria-hidden="true"><use href="#i-` + Escape(name) + `"/></svg>`) //nolint:gosec // escaped
}

// Mark is a state as an icon, and as a word for those who cannot see it.
func Mark(s State) template.HTML {
	return icon(s.Icon, s.Tone) + template.HTML(`<span class="vh">`+Escape(s.Word)+`: </span>`) //nolint:gosec // escaped
}

func badge(s State) template.HTML {
	return template.HTML(`<span class="badge `+Escape(s.Tone)+`">`) + icon(s.Icon) + template.HTML(Escape(s.Word)+`</span>`) //nolint:gosec // escaped
}

func tag(l Label) template.HTML {
	if l.Text == "" {
		return dash
	}
	return template.HTML(`<span class="tag ` + Escape(l.Tone) + `">` + Escape(l.Text) + `</span>`) //nolint:gosec // escaped
}
