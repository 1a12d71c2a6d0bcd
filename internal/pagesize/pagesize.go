// Package pagesize says how many entries a page of a list has.
package pagesize

import "fmt"

const (
	usual = 50
	most  = 200
)

// Of returns how many entries a page has if limit are asked for: 50 for 0. Unless the limit
// is from 1 to 200, the error wraps invalid, which says whose list it is.
func Of(invalid error, limit int) (int, error) {
	switch {
	case limit == 0:
		return usual, nil
	case limit < 1 || limit > most:
		return 0, fmt.Errorf("%w limit %d: it must be from 1 to %d", invalid, limit, most)
	}
	return limit, nil
}
