package postgres

import (
	"math"
	"testing"

	"github.com/jackc/pgx/v5/pgtype"
	"github.com/stretchr/testify/require"
)

// Arrays that are encoded at once are the same bytes as those of pgx.
func TestArraysAreEncodedAsByPGX(t *testing.T) {
	theirs, ours := pgtype.NewMap(), pgtype.NewMap()
	encodeWhole(ours)
	long := make([]int64, 1000)
	for i := range long {
		long[i] = int64(i) << 40
	}
	for _, c := range []struct {
		oid  uint32
		args []any
	}{
		{pgtype.Int4ArrayOID, []any{[]int32(nil), []int32{}, []int32{0, -1, math.MaxInt32, math.MinInt32}, []int64{7}}},
		{pgtype.Int8ArrayOID, []any{[]int64(nil), []int64{}, []int64{0, -1, math.MaxInt64, math.MinInt64}, long, []int32{7}, []pgtype.Int8{{Int64: 7, Valid: true}, {}}}},
		{pgtype.TimestamptzArrayOID, []any{
			timestamps(nil), timestamps{}, timestamps{1, -1, 946_684_800_000_000}, timestamps{none, never, always, 1_700_000_000_123_456}, timestamps{never},
		}},
	} {
		for _, format := range []int16{pgtype.BinaryFormatCode, pgtype.TextFormatCode} {
			for _, arg := range c.args {
				for _, before := range [][]byte{nil, []byte("before")} { // arguments share a buffer
					want, err := theirs.Encode(c.oid, format, arg, before)
					require.NoError(t, err)
					got, err := ours.Encode(c.oid, format, arg, before)
					require.NoError(t, err)
					require.Equal(t, want, got, "%T %v", arg, arg)
				}
			}
		}
	}
}
