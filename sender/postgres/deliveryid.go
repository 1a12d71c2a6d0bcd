package postgres

import (
	"strconv"
	"strings"
)

// A delivery's id is its event's, without the prefix, and its subscription's
// number in base 36.
const (
	eventPrefix    = "evt_"
	deliveryPrefix = "dlv_"
)

func deliveryID(eventID string, subscription int64) string {
	return deliveryPrefix + strings.TrimPrefix(eventID, eventPrefix) + "_" + strconv.FormatInt(subscription, 36)
}
