package rules

import (
	"encoding/base64"
	"fmt"
	"strings"

	"github.com/surehook/surehook/internal/pagesize"
	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
)

// Lists have the texts of cursors in common. A text is opaque to callers, and each cursor has
// exactly one. No text is the beginning of another one, so a text that was cut off is refused
// and does not lead elsewhere. Cursors are not secret, and give no rights.

// NumberCursor is the cursor of a list that is ordered by a number, from 1.
func NumberCursor(no int64) string { return write(no) }

// Number reads a query of such a list: its limit, and the number at which the page
// begins. That is first if there is no cursor. The error matches sender.ErrInvalid.
func Number(asked int, text string, first int64) (limit int, from int64, err error) {
	if limit, err = pagesize.Of(sender.ErrInvalid, asked); err != nil || text == "" {
		return limit, first, err
	}
	if !read(text, &from) || from < 1 {
		return 0, 0, errCursor
	}
	return limit, from, nil
}

// FailingCursor is the cursor of a list that is ordered by a time, in microseconds since
// 1970, and by a number.
func FailingCursor(since, no int64) string { return write(since, no) }

// Failing reads a query of such a list: its limit, and the time and the number at which the
// page begins. The error matches sender.ErrInvalid.
func Failing(asked int, text string) (limit int, since, no int64, err error) {
	if limit, err = pagesize.Of(sender.ErrInvalid, asked); err != nil || text == "" {
		return limit, 0, 0, err
	}
	if !read(text, &since, &no) || since < 1 || no < 1 {
		return 0, 0, 0, errCursor
	}
	return limit, since, no, nil
}

// DeliveryCursor is the cursor of a list of deliveries.
func DeliveryCursor(k dispatch.DeliveryKey) string { return write(k.Event, k.Subscription) }

// Delivery reads a query of such a list: its limit, and the key at which the page
// begins. That is first if there is no cursor. The error matches sender.ErrInvalid.
func Delivery(asked int, text string, first dispatch.DeliveryKey) (limit int, from dispatch.DeliveryKey, err error) {
	if limit, err = pagesize.Of(sender.ErrInvalid, asked); err != nil || text == "" {
		return limit, first, err
	}
	if !read(text, &from.Event, &from.Subscription) || from.Event < 1 || from.Subscription < 1 {
		return 0, dispatch.DeliveryKey{}, errCursor
	}
	return limit, from, nil
}

var errCursor = fmt.Errorf("%w cursor: it must be one that a page before came with", sender.ErrInvalid)

// encoding ignores line ends although it is strict: read refuses them.
var encoding = base64.RawURLEncoding.Strict()

func write(numbers ...int64) string { return encoding.EncodeToString([]byte(Decimal(numbers...))) }

func read(text string, into ...*int64) bool {
	decimal, err := encoding.DecodeString(text)
	return err == nil && !strings.ContainsAny(text, "\r\n") && ReadDecimal(string(decimal), into...)
}
