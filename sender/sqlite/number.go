package sqlite

import "fmt"

// number is a column of integers. A Scan into an *int64 goes by way of reflection, which
// costs as much as SQLite's work for the column.
type number int64

// numberOf scans a column of integers into n.
func numberOf(n *int64) *number { return (*number)(n) }

// Scan implements sql.Scanner.
func (n *number) Scan(v any) error {
	i, ok := v.(int64)
	if !ok {
		return fmt.Errorf("a column that must be an integer has a %T", v)
	}
	*n = number(i)
	return nil
}
