package sender

import (
	"fmt"
	"log/slog"
)

// Settings and ClientCertificate redact themselves where they are printed or logged. A
// handler that writes JSON does not ask what lies deeper within a value, so those that
// hold them say what they look like. Their text is that of %+v, which does ask.

// LogValue shows the settings as Settings.LogValue does.
func (s Subscription) LogValue() slog.Value {
	return slog.StringValue(fmt.Sprint(s))
}

// Format writes all fields with their names, whatever the verb: with one that does not
// suit a field, fmt would write that without asking it.
func (s Subscription) Format(f fmt.State, _ rune) {
	type plain Subscription
	_, _ = fmt.Fprintf(f, "%+v", plain(s))
}

// LogValue shows the settings as Settings.LogValue does, and nothing of the certificate.
func (n NewSubscription) LogValue() slog.Value {
	return slog.StringValue(fmt.Sprint(n))
}

// Format writes all fields with their names, whatever the verb: with one that does not
// suit a field, fmt would write that without asking it.
func (n NewSubscription) Format(f fmt.State, _ rune) {
	type plain NewSubscription
	_, _ = fmt.Fprintf(f, "%+v", plain(n))
}

// LogValue shows the settings as Settings.LogValue does, and nothing of the certificate.
func (c SubscriptionChange) LogValue() slog.Value {
	return slog.StringValue(fmt.Sprint(c))
}

// Format writes all fields with their names, whatever the verb: with one that does not
// suit a field, fmt would write that without asking it.
func (c SubscriptionChange) Format(f fmt.State, _ rune) {
	type plain SubscriptionChange
	_, _ = fmt.Fprintf(f, "%+v", plain(c))
}

// LogValue shows whose delivery it is, and neither the body nor where it goes.
func (c Claimed) LogValue() slog.Value {
	attrs := []slog.Attr{slog.String("event_id", c.Event.ID), slog.Int("attempt", c.Number)}
	if c.Target != nil {
		attrs = append(attrs, slog.Any("target", *c.Target))
	}
	return slog.GroupValue(attrs...)
}

// LogValue shows whose delivery it is, what came of the attempt, and what was decided.
func (r Recorded) LogValue() slog.Value {
	attrs := []slog.Attr{
		slog.String("event_id", r.Event.ID), slog.Int("attempt", r.Result.Number), slog.String("class", string(r.Result.Class)),
		slog.String("status", string(r.Decision.Status)), slog.Bool("lost", r.Lost),
	}
	if r.Target != nil {
		attrs = append(attrs, slog.Any("target", *r.Target))
	}
	return slog.GroupValue(attrs...)
}

// LogValue shows whose it is, and not where it leads.
func (t Target) LogValue() slog.Value {
	return slog.GroupValue(slog.String("subscription_id", t.Subscription), slog.String("subscriber_id", t.Subscriber))
}
