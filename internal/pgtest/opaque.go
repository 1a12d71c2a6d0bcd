package pgtest

import (
	"context"
	"database/sql/driver"
)

// Opaque returns a driver's connector, for sql.OpenDB, behind which nobody can tell which
// driver it is: its connections have only the methods that those of every driver have.
func Opaque(c driver.Connector) driver.Connector { return opaque{c} }

type opaque struct{ driver.Connector }

// Connect implements driver.Connector.
func (o opaque) Connect(ctx context.Context) (driver.Conn, error) {
	c, err := o.Connector.Connect(ctx)
	return struct{ driver.Conn }{c}, err
}
