package sender

import (
	"context"
	"time"
)

// NoticeStore lists notices. History uses it.
type NoticeStore interface {
	// Notices lists notices, the newest first, and the cursor of the page that
	// follows ("" if none does). A malformed cursor is ErrInvalid.
	Notices(ctx context.Context, q NoticeQuery) ([]Notice, string, error)

	// AcknowledgeNotice marks a notice as read by somebody, at the database's time,
	// and returns it. One that is acknowledged already stays as it is. ErrNotFound:
	// there is none of that id, or, if subscriber is not empty, it is for another.
	AcknowledgeNotice(ctx context.Context, id, subscriber string) (Notice, error)
}

// NotifierStore is what a dispatcher with a Notifier needs.
type NotifierStore interface {
	// ClaimNotices takes up to limit notices, the oldest first, that are neither
	// notified nor acknowledged, and are not taken by another call whose lease
	// still runs, nor put off.
	ClaimNotices(ctx context.Context, lease time.Duration, limit int) ([]ClaimedNotice, error)

	// Notified marks a notice as accepted, at the database's time.
	Notified(ctx context.Context, id string) error

	// PutOffNotice has a notice claimed again after a while, and not before.
	PutOffNotice(ctx context.Context, id string, after time.Duration) error
}

// ClaimedNotice is a notice that is to be given to a Notifier.
type ClaimedNotice struct {
	Notice
	Tries int // how often it was claimed, this time included
}
