package sender

import "fmt"

// PageSize returns how many entries a page has if limit are asked for: 50 for 0.
// ErrInvalid: it is not from 1 to 200.
func PageSize(limit int) (int, error) {
	switch {
	case limit == 0:
		return 50, nil
	case limit < 1 || limit > 200:
		return 0, fmt.Errorf("%w limit %d: it must be from 1 to 200", ErrInvalid, limit)
	}
	return limit, nil
}
