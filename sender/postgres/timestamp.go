package postgres

import (
	"database/sql/driver"
	"fmt"
	"math"
	"time"

	"github.com/jackc/pgx/v5/pgtype"
)

// timestamp is a timestamptz in the form in which the code reckons: microseconds since
// 1970, so that comparing and storing lose nothing.
type timestamp int64

const (
	none   timestamp = 0             // NULL
	never  timestamp = math.MaxInt64 // infinity
	always timestamp = math.MinInt64 // -infinity
)

// timestampOf returns none for the zero time.
func timestampOf(t time.Time) timestamp {
	if t.IsZero() {
		return none
	}
	return timestamp(t.UnixMicro())
}

// timestampFrom returns the first timestamp that is not before a time, or none for the zero
// time. Stored times have no finer parts, so they are before the one if they are before the
// other.
func timestampFrom(t time.Time) timestamp {
	at := timestampOf(t)
	if t.Nanosecond()%1000 != 0 {
		at++
	}
	return at
}

// time returns the zero time for none, and for the infinite ones.
func (m timestamp) time() time.Time {
	switch m {
	case none, never, always:
		return time.Time{}
	}
	return time.UnixMicro(int64(m)).UTC()
}

func (m timestamp) plus(d time.Duration) timestamp { return m + timestamp(d.Microseconds()) }

// ScanTimestamptz implements pgtype.TimestamptzScanner.
func (m *timestamp) ScanTimestamptz(v pgtype.Timestamptz) error {
	switch {
	case !v.Valid:
		*m = none
	case v.InfinityModifier == pgtype.Infinity:
		*m = never
	case v.InfinityModifier == pgtype.NegativeInfinity:
		*m = always
	default:
		*m = timestamp(v.Time.UnixMicro())
	}
	return nil
}

// TimestamptzValue implements pgtype.TimestamptzValuer.
func (m timestamp) TimestamptzValue() (pgtype.Timestamptz, error) {
	switch m {
	case none:
		return pgtype.Timestamptz{}, nil
	case never:
		return pgtype.Timestamptz{InfinityModifier: pgtype.Infinity, Valid: true}, nil
	case always:
		return pgtype.Timestamptz{InfinityModifier: pgtype.NegativeInfinity, Valid: true}, nil
	}
	return pgtype.Timestamptz{Time: m.time(), Valid: true}, nil
}

// Scan implements sql.Scanner, for transactions of database/sql. Callers' transactions read
// no infinite times.
func (m *timestamp) Scan(src any) error {
	switch v := src.(type) {
	case nil:
		*m = none
	case time.Time:
		*m = timestamp(v.UnixMicro())
	default:
		return fmt.Errorf("cannot read a %T as a time", src)
	}
	return nil
}

// Value implements driver.Valuer.
func (m timestamp) Value() (driver.Value, error) {
	switch m {
	case none:
		return nil, nil
	case never:
		return "infinity", nil
	case always:
		return "-infinity", nil
	}
	return m.time(), nil
}

// timestamps are an array of timestamptz. They also work where pgx does not learn the type
// of an argument from the server, in its query modes exec and simple_protocol.
type timestamps []timestamp

var (
	_ pgtype.ArrayGetter = timestamps(nil)
	_ driver.Valuer      = timestamps(nil)
)

// sendable replaces arguments by what pgx can send in all of its query modes.
func sendable(args []any) []any {
	for i, arg := range args {
		if all, ok := arg.([]timestamp); ok {
			args[i] = timestamps(all)
		}
	}
	return args
}

// Dimensions implements pgtype.ArrayGetter.
func (m timestamps) Dimensions() []pgtype.ArrayDimension {
	if m == nil {
		return nil
	}
	return []pgtype.ArrayDimension{{Length: int32(len(m)), LowerBound: 1}}
}

// Index implements pgtype.ArrayGetter.
func (m timestamps) Index(i int) any { return m[i] }

// IndexType implements pgtype.ArrayGetter.
func (m timestamps) IndexType() any { return none }

// Value implements driver.Valuer. It is the array as text.
func (m timestamps) Value() (driver.Value, error) {
	if m == nil {
		return nil, nil
	}
	text := []byte{'{'}
	for i, at := range m {
		if i > 0 {
			text = append(text, ',')
		}
		switch at {
		case none:
			text = append(text, "NULL"...)
		case never:
			text = append(text, "infinity"...)
		case always:
			text = append(text, "-infinity"...)
		default:
			text = append(at.time().AppendFormat(append(text, '"'), "2006-01-02 15:04:05.999999Z07:00"), '"')
		}
	}
	return string(append(text, '}')), nil
}
