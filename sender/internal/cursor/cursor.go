// Package cursor has what the stores' lists have in common: how many they return at a
// time, and the texts by which one goes on. A text is opaque to callers, and taken only
// in the one form that it has: none is the beginning of another one, so that what was
// cut off does not lead elsewhere. It is no secret, and gives no right.
package cursor

import (
	"cmp"
	"encoding/base64"
	"fmt"
	"strings"

	"github.com/surehook/surehook/sender"
)

// Bounds of a page.
const (
	defaultLimit = 50
	maxLimit     = 200
)

// OfNumber is the cursor of a list that is ordered by a number, from 1.
func OfNumber(no int64) string { return write(no) }

// Number reads what is asked of such a list: how many, and the number from which on,
// which is first without a cursor. The error matches sender.ErrInvalid.
func Number(asked int, text string, first int64) (limit int, from int64, err error) {
	if limit, err = limitOf(asked); err != nil || text == "" {
		return limit, first, err
	}
	if !read(text, &from) || from < 1 {
		return 0, 0, errCursor
	}
	return limit, from, nil
}

// OfDelivery is the cursor of a list of deliveries.
func OfDelivery(k sender.DeliveryKey) string { return write(k.Event, k.Subscription) }

// Delivery reads what is asked of such a list: how many, and the key from which on,
// which is first without a cursor. The error matches sender.ErrInvalid.
func Delivery(asked int, text string, first sender.DeliveryKey) (limit int, from sender.DeliveryKey, err error) {
	if limit, err = limitOf(asked); err != nil || text == "" {
		return limit, first, err
	}
	if !read(text, &from.Event, &from.Subscription) || from.Event < 1 || from.Subscription < 1 {
		return 0, sender.DeliveryKey{}, errCursor
	}
	return limit, from, nil
}

var errCursor = fmt.Errorf("%w cursor: it must be one that a page before came with", sender.ErrInvalid)

func limitOf(asked int) (int, error) {
	limit := cmp.Or(asked, defaultLimit)
	if limit < 1 || limit > maxLimit {
		return 0, fmt.Errorf("%w limit %d: it must be from 1 to %d", sender.ErrInvalid, asked, maxLimit)
	}
	return limit, nil
}

// encoding passes over line ends, though it is strict.
var encoding = base64.RawURLEncoding.Strict()

func write(numbers ...int64) string { return encoding.EncodeToString([]byte(Decimal(numbers...))) }

func read(text string, into ...*int64) bool {
	decimal, err := encoding.DecodeString(text)
	return err == nil && !strings.ContainsAny(text, "\r\n") && ReadDecimal(string(decimal), into...)
}
