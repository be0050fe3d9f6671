"""Prices of European options over a grid of spots and maturities: a device function, broadcasting, two outputs.

Prints part of the grid, and by how much put-call parity is violated (call - put = spot - strike exp(-rate years)).
"""

import numpy as np

import fusec

black_scholes = fusec.ElementwiseKernel(
    "T spot, T years, T strike, T rate, T volatility",
    "T call, T put",
    """
    T spread = volatility * sqrt(years);
    T d1 = (log(spot / strike) + (rate + volatility * volatility / 2) * years) / spread;
    T d2 = d1 - spread;
    T discounted = strike * exp(-rate * years);
    call = spot * below(d1) - discounted * below(d2);
    put = discounted * below(-d2) - spot * below(-d1);
    """,
    "black_scholes",
    preamble="""
    // The normal distribution function; erfc keeps its accuracy far out in the tail.
    template <typename T> __device__ T below(T d) { return erfc(-d * T(0.70710678118654752)) / 2; }
    """,
)

spot = np.linspace(50, 150, 1001)[:, None]
years = np.linspace(1 / 12, 3, 1000)
strike, rate, volatility = 100.0, 0.02, 0.3
call, put = black_scholes(spot, years, strike, rate, volatility)

print(f"{call.size:,} options; strike {strike:g}, rate {rate:.0%}, volatility {volatility:.0%}\n")
print("spot     " + "".join(f"{years[column]:7.2f} years" for column in (0, 333, 666, 999)))
for row in range(0, 1001, 250):
    print(f"{spot[row, 0]:5.0f} call" + "".join(f"{call[row, column]:13.4f}" for column in (0, 333, 666, 999)))
    print("      put " + "".join(f"{put[row, column]:13.4f}" for column in (0, 333, 666, 999)))

parity = abs(call - put - (spot - strike * np.exp(-rate * years))).max()
print(f"\nput-call parity holds to {parity:.1e}")
assert parity < 1e-12, "parity is violated"
