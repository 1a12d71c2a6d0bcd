package postgres

import (
	"encoding/binary"
	"slices"

	"github.com/jackc/pgx/v5/pgtype"
)

// encodeWhole has a connection encode at once the arrays that a step sends most. pgx asks
// for each element by an interface, and appends it to a buffer that grows by a quarter at
// a time. A step sends some dozens of arrays of hundreds of elements, so half of all its
// allocations were for that.
func encodeWhole(m *pgtype.Map) {
	for _, oid := range []uint32{pgtype.Int4ArrayOID, pgtype.Int8ArrayOID, pgtype.TimestamptzArrayOID} {
		if t, ok := m.TypeForOID(oid); ok {
			m.RegisterType(&pgtype.Type{Name: t.Name, OID: oid, Codec: wholeArrays{t.Codec}})
		}
	}
}

// wholeArrays encodes slices of the types that the steps send, and leaves all else to pgx's
// codec.
type wholeArrays struct{ pgtype.Codec }

// PlanEncode implements pgtype.Codec.
func (c wholeArrays) PlanEncode(m *pgtype.Map, oid uint32, format int16, value any) pgtype.EncodePlan {
	if format == pgtype.BinaryFormatCode {
		switch value.(type) {
		case []int32:
			if oid == pgtype.Int4ArrayOID {
				return encodes[int32](encodeInt4s)
			}
		case []int64:
			if oid == pgtype.Int8ArrayOID {
				return encodes[int64](encodeInt8s)
			}
		case timestamps:
			if oid == pgtype.TimestamptzArrayOID {
				return encodeTimestamps{}
			}
		}
	}
	return c.Codec.PlanEncode(m, oid, format, value)
}

// encodes is a plan for slices. A nil one is NULL.
type encodes[E any] func(buf []byte, all []E) []byte

// Encode implements pgtype.EncodePlan.
func (f encodes[E]) Encode(value any, buf []byte) ([]byte, error) {
	all, _ := value.([]E)
	if all == nil {
		return nil, nil
	}
	return f(buf, all), nil
}

func encodeInt4s(buf []byte, all []int32) []byte {
	buf = appendArray(buf, pgtype.Int4OID, len(all), 4)
	for _, v := range all {
		buf = binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(buf, 4), uint32(v))
	}
	return buf
}

func encodeInt8s(buf []byte, all []int64) []byte {
	buf = appendArray(buf, pgtype.Int8OID, len(all), 8)
	for _, v := range all {
		buf = binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint32(buf, 8), uint64(v))
	}
	return buf
}

// encodeTimestamps is encodes for timestamps.
type encodeTimestamps struct{}

// Encode implements pgtype.EncodePlan.
func (encodeTimestamps) Encode(value any, buf []byte) ([]byte, error) {
	const since2000 = 946_684_800_000_000 // where timestamptz begins
	all, _ := value.(timestamps)
	if all == nil {
		return nil, nil
	}
	nulls := len(buf) + 4
	buf = appendArray(buf, pgtype.TimestamptzOID, len(all), 8)
	for _, at := range all {
		switch at {
		case none:
			buf[nulls+3] = 1
			buf = binary.BigEndian.AppendUint32(buf, 1<<32-1)
			continue
		case never, always:
		default:
			at -= since2000
		}
		buf = binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint32(buf, 8), uint64(at))
	}
	return buf, nil
}

// appendArray appends the header of an array of one dimension without NULLs: see array_recv
// in PostgreSQL's arrayfuncs.c. There is room for the elements behind it, and for other
// arrays: all arguments of a statement are in one buffer.
func appendArray(buf []byte, of uint32, n, size int) []byte {
	if need := 20 + n*(4+size); cap(buf)-len(buf) < need {
		buf = slices.Grow(buf, max(need, 3*cap(buf)))
	}
	for _, v := range []uint32{1, 0, of, uint32(n), 1} { // dimensions, NULLs, the elements' type, how many, the first index
		buf = binary.BigEndian.AppendUint32(buf, v)
	}
	return buf
}
