"""What lies between hosts: links, queues, marking, pausing, routes, topologies. Laws only, no clock."""
