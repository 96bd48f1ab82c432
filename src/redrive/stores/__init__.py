"""Where letters live for people: the adapters of the store ports, and the rules that they share."""
