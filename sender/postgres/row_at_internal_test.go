package postgres

import (
	"testing"

	"github.com/jackc/pgx/v5/pgtype"
	"github.com/stretchr/testify/require"
)

func TestRowAtForgetsTheOldest(t *testing.T) {
	p := newRowAt()
	here := pgtype.TID{BlockNumber: 1, OffsetNumber: 1, Valid: true}
	remember(&p, p.heads, []int64{1, 2}, []pgtype.TID{here, here})
	for no := range int64(rowAtLimit - 1) {
		remember(&p, p.heads, []int64{100 + no}, []pgtype.TID{here})
		if no%1000 == 0 {
			rowsAt(&p, p.heads, []int64{1})
		}
	}
	require.Equal(t, []pgtype.TID{here, {Valid: true}}, rowsAt(&p, p.heads, []int64{1, 2}))
}
