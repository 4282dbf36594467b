"""`incrowd attack` and `incrowd audit`: what they take, what they run, what they print."""
