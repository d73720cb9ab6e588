//! `nexusctl ping`.

use super::Context;
use crate::{cli::Ping, exit::Error, output::time};
use serde::Serialize;
use std::time::Duration;

pub(crate) async fn run(context: &Context, args: Ping) -> Result<(), Error> {
    let nexus = context.connect().await?;
    let target = args.server.as_deref().unwrap_or("nexusd");
    let mut times = Vec::new();
    for nth in 0..args.count {
        if nth > 0 {
            tokio::time::sleep(args.interval).await;
        }
        let time = match &args.server {
            Some(server) => nexus.servers().ping(server).await?,
            None => nexus.ping().await?,
        };
        times.push(time);
        if !context.output.json {
            let line = format!("{target}: {}", time::short(time));
            context.output.foreign(&line)?;
        }
    }
    let summary = Summary::of(&times);
    if context.output.json {
        return context.output.value(&PingJson {
            target,
            times_ms: times.into_iter().map(ms).collect(),
            min_ms: ms(summary.min),
            avg_ms: ms(summary.avg),
            max_ms: ms(summary.max),
        });
    }
    if args.count > 1 {
        let [min, avg, max] = [summary.min, summary.avg, summary.max].map(time::short);
        context
            .output
            .data(&format!("min {min}, avg {avg}, max {max}"))?;
    }
    Ok(())
}

struct Summary {
    min: Duration,
    avg: Duration,
    max: Duration,
}

impl Summary {
    fn of(times: &[Duration]) -> Self {
        let count = u32::try_from(times.len()).unwrap_or(u32::MAX).max(1);
        Self {
            min: times.iter().min().copied().unwrap_or_default(),
            avg: times.iter().sum::<Duration>() / count,
            max: times.iter().max().copied().unwrap_or_default(),
        }
    }
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}

#[derive(Serialize)]
struct PingJson<'a> {
    target: &'a str,
    times_ms: Vec<f64>,
    min_ms: f64,
    avg_ms: f64,
    max_ms: f64,
}
