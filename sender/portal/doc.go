// Package portal serves pages to a subscriber.
package portal
