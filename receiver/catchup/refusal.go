package catchup

import (
	"context"
	"log/slog"
)

// Refusal is an event that was passed over: it can never be applied, and cannot be kept
// as a dead letter either, or it is larger than ClientConfig.MaxPageBytes. It has left no
// marker, and the sender may still have it.
type Refusal struct {
	Event string // the body's id; empty unless it has 1 to 255 bytes
	After string // the cursor of the page that has it; empty: the beginning of what is kept
	Err   error  // why
}

// refuse passes an event over, and reports it.
func (p *pass[Tx]) refuse(ctx context.Context, id string, err error) {
	r := Refusal{Event: id, After: p.at, Err: err}
	p.report.Seen++
	p.report.Refused++
	p.log().LogAttrs(ctx, slog.LevelError, "catchup: an event is passed over: it can neither be applied nor kept as a dead letter",
		slog.String("feed", p.cfg.Name), slog.String("event_id", r.Event), slog.String("after", r.After), slog.Any("error", err))
	if hook := p.cfg.Hooks.Refused; hook != nil {
		p.hook(ctx, func() { hook(ctx, r) })
	}
}
