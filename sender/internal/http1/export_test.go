package http1

// Alive looks at the connection that was kept last, as before a request.
func (c *Client) Alive() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.idle.newest.alive()
}

// Idle is how many connections are kept.
func (c *Client) Idle() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.idle.n
}

// Watched is how many connections are kept to learn from them alone.
func (c *Client) Watched() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.watched)
}
