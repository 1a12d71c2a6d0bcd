package jobs

import (
	"context"
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"

	"github.com/surehook/surehook/internal/ident"
	"github.com/surehook/surehook/internal/pagesize"
)

const (
	cursorMark = "j1." // the version of a cursor's form, so that other forms are refused

	// maxExamined is about how many jobs one List looks at.
	maxExamined = 5000

	// maxListed bounds the results of a page together: 200 of them could have gigabytes.
	maxListed = 4 << 20
)

// Query selects jobs. Empty fields select all.
type Query struct {
	Owner  string
	Kind   string
	Status Status
	Cursor string // of the page before
	Limit  int    // 1 to 200; 0 means 50
}

// Get returns a job as it is now, or ErrNotFound.
func (j *Jobs[Tx]) Get(ctx context.Context, k Key) (job Job, err error) {
	err = j.read(ctx, func(tx Tx) error {
		job, err = j.GetTx(ctx, tx, k)
		return err
	})
	return job, err
}

// GetTx is Get in the caller's transaction.
func (j *Jobs[Tx]) GetTx(ctx context.Context, tx Tx, k Key) (Job, error) {
	r, err := j.store.GetTx(ctx, tx, k)
	return r.Job, err
}

// List returns jobs without their inputs, the newest first, and the cursor of the next
// page; "" on the last page. It looks at a bounded number of jobs. So if few jobs have
// the kind or the status, a page can be short, or empty, though others follow. It can be
// short, too, because the results of a page have at most 4 MiB together, or are a larger one
// alone. For an owner's queued or running jobs it looks at unfinished ones alone. It returns
// ErrInvalid if the cursor is not one of List's, or if the limit or a filter is refused.
func (j *Jobs[Tx]) List(ctx context.Context, q Query) (page []Job, next string, err error) {
	sq := ListQuery{Owner: q.Owner, Kind: q.Kind, Status: q.Status, Examine: maxExamined, Bytes: maxListed}
	if sq.Limit, err = pagesize.Of(ErrInvalid, q.Limit); err != nil {
		return nil, "", err
	}
	for _, filter := range [...]struct{ name, text string }{{"owner", q.Owner}, {"kind", q.Kind}} {
		if err := ident.Storable(filter.name, filter.text); err != nil {
			return nil, "", fmt.Errorf("%w: %w", ErrInvalid, err)
		}
	}
	switch q.Status {
	case "", Queued, Running, Succeeded, Failed, Cancelled:
	default:
		return nil, "", fmt.Errorf("%w status %q: it must be one of %s, %s, %s, %s and %s", ErrInvalid, q.Status, Queued, Running, Succeeded, Failed, Cancelled)
	}
	if sq.Before, err = parseCursor(q.Cursor); err != nil {
		return nil, "", err
	}
	var rs []Record
	var before int64
	err = j.read(ctx, func(tx Tx) error {
		rs, before, err = j.store.ListTx(ctx, tx, sq)
		return err
	})
	if err != nil {
		return nil, "", err
	}
	if before > 0 {
		next = cursorOf(before)
	}
	page = make([]Job, len(rs))
	for i, r := range rs {
		page[i] = r.Job
	}
	return page, next, nil
}

func cursorOf(no int64) string {
	return base64.RawURLEncoding.EncodeToString([]byte(cursorMark + strconv.FormatInt(no, 10)))
}

func parseCursor(cursor string) (before int64, err error) {
	if cursor == "" {
		return 0, nil
	}
	raw, err := base64.RawURLEncoding.DecodeString(cursor)
	if err == nil {
		if digits, ok := strings.CutPrefix(string(raw), cursorMark); ok {
			if before, err = strconv.ParseInt(digits, 10, 64); err == nil && before > 0 && cursorOf(before) == cursor {
				return before, nil
			}
		}
	}
	return 0, fmt.Errorf("%w cursor: it must be one that a list of jobs returned, unchanged", ErrInvalid)
}
